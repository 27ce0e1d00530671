-- title: Rates by category of prompts
-- section: edits
-- form: rates
-- note: Baseline arm. Intervals by source; they are for these prompts.
SELECT measure_display AS heading, category AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       rate_low(value, source_id) AS low, rate_high(value, source_id) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure, category, model_key
ORDER BY measure_position, min(prompt_position), model_position
