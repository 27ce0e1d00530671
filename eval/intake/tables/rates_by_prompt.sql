-- title: Rates by prompt
-- section: edits
-- form: rates
-- rows: Prompt
-- note: Baseline arm. Intervals are for people like these and this prompt.
SELECT measure_display AS heading, prompt_id AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       rate_low(value, source_id, prompt_id) AS low, rate_high(value, source_id, prompt_id) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure, prompt_id, model_key
ORDER BY measure_position, min(prompt_position), model_position
