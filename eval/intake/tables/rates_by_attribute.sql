-- title: Rates by $display
-- section: disparity
-- form: rates
-- rows: $display
-- for: attribute
-- note: Baseline arm. Of two judges the mean of their indicators. Intervals as in the rates by model.
SELECT measure_display AS heading, t.level_display AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured JOIN attribute t ON t.name = '$attribute' AND t.level = measured."$attribute"
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure_position, t.position, model_position
ORDER BY measure_position, t.position, model_position
