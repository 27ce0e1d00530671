-- title: Each judge's rates
-- section: robustness
-- form: rates
-- rows: Outcome
-- note: Baseline arm, by each judge alone. Intervals as in the rates by model.
SELECT i.model AS heading, m.measure_display AS "row", a.who AS "column", sum(a.value) AS k, count(*) AS n,
       interval_low(rate_interval(a.value, i.source_id, i.prompt_id)) AS low, interval_high(rate_interval(a.value, i.source_id, i.prompt_id)) AS high
FROM alternative a JOIN measure m USING (measure) JOIN item i USING (item)
WHERE a.who IN ('primary', 'secondary') AND i.arm = 'edited'
GROUP BY i.model_position, m.measure_position, a.who
ORDER BY i.model_position, m.measure_position, a.who
