-- title: Each judge's rates
-- section: robustness
-- form: rates
-- rows: Outcome
-- note: Baseline arm, by each judge alone. Intervals as in the rates by model.
SELECT i.model AS heading, m.measure_display AS "row", s.who AS "column",
       sum((s.value BETWEEN m.low AND m.high) <> m.outside) AS k, count(*) AS n,
       rate_low((s.value BETWEEN m.low AND m.high) <> m.outside, i.source_id, i.prompt_id) AS low,
       rate_high((s.value BETWEEN m.low AND m.high) <> m.outside, i.source_id, i.prompt_id) AS high
FROM score s JOIN measure m USING (axis) JOIN item i USING (item_id)
WHERE s.kind = 'judge' AND i.arm = 'edited'
GROUP BY i.model_key, m.measure, s.who
ORDER BY i.model_position, m.measure_position, s.who
