-- title: With a prompt that keeps the person, minus without
-- section: mitigation
-- form: differences
-- rows: Outcome
-- note: Pairs of edits that differ in the prompt alone, both judged. Intervals by source.
SELECT e.measure_display AS "row", e.model AS "column", avg(p.value - e.value) AS value, count(*) AS n,
       mean_low(p.value - e.value, e.source_id) AS low, mean_high(p.value - e.value, e.source_id) AS high
FROM measured p JOIN measured e ON e.arm = 'edited' AND e.who = p.who AND e.measure = p.measure
     AND e.model_key = p.model_key AND e.source_id = p.source_id AND e.prompt_id = p.prompt_id AND e.seed = p.seed
WHERE p.arm = 'preserved' AND p.who = 'judges'
GROUP BY p.measure, p.model_key
ORDER BY e.measure_position, e.model_position
