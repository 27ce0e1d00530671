-- title: Rates by model
-- section: edits
-- form: rates
-- note: Baseline arm. Of two judges the mean of their indicators. Intervals: outputs of one source are not independent (CR2 by source, t with Satterthwaite's degrees of freedom).
SELECT measure_display AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       rate_low(value, source_id) AS low, rate_high(value, source_id) AS high
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure, model_key
ORDER BY measure_position, model_position
