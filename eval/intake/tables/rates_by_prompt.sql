-- title: Rates by prompt
-- section: edits
-- form: rates
-- rows: Prompt
-- note: Baseline arm. Intervals are for people like these and this prompt.
SELECT measure_display AS heading, prompt_id AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure_position, prompt_row, model_position
ORDER BY measure_position, min(prompt_position), model_position
