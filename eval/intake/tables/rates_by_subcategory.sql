-- title: Rates by subcategory of prompts
-- section: edits
-- form: rates
-- rows: Subcategory
-- note: Baseline arm. Intervals as in the rates by model.
SELECT measure_display AS heading, category || ' / ' || subcategory AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited' AND subcategory <> ''
GROUP BY measure_position, category, subcategory, model_position
ORDER BY measure_position, min(prompt_position), model_position
