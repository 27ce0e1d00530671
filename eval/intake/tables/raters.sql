-- title: Rates by the raters' majority
-- section: human
-- form: rates
-- rows: Outcome
-- note: Baseline arm; outputs with at least two raters who are kept, and a majority. Intervals as in the rates by model.
SELECT measure_display AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured
WHERE who = 'raters' AND arm = 'edited'
GROUP BY measure, model_key
ORDER BY measure_position, model_position
