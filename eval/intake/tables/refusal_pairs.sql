-- title: Refused with a prompt that keeps the person, minus without
-- section: refusals
-- form: differences
-- rows: Model
-- note: Pairs of requests that differ in the prompt alone, both answered. Intervals by source.
SELECT e.model AS "row", 'Refused' AS "column", avg(p.value - e.value) AS value, count(*) AS n,
       mean_low(p.value - e.value, e.source_id) AS low, mean_high(p.value - e.value, e.source_id) AS high
FROM measured p JOIN measured e ON e.arm = 'edited' AND e.who = 'asked' AND e.model_key = p.model_key
     AND e.source_id = p.source_id AND e.prompt_id = p.prompt_id AND e.seed = p.seed
WHERE p.arm = 'preserved' AND p.who = 'asked'
GROUP BY p.model_key
ORDER BY e.model_position
