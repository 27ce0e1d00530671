-- title: Rates by seed
-- section: robustness
-- form: rates
-- rows: Seed
-- note: Baseline arm; of models with several seeds. Intervals as in the rates by model.
SELECT measure_display AS heading, 'seed ' || seed AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
      AND model_key IN (SELECT model_key FROM output WHERE kind = 'edit' GROUP BY model_key HAVING count(DISTINCT seed) > 1)
GROUP BY measure_position, seed, model_position
ORDER BY measure_position, seed, model_position
