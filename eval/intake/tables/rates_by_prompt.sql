-- title: Rates by prompt
-- section: edits
-- form: rates
-- note: Baseline arm. Intervals by source.
SELECT measure_display AS heading, prompt_id AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       rate_low(value, source_id) AS low, rate_high(value, source_id) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure, prompt_id, model_key
ORDER BY measure_position, min(prompt_position), model_position
