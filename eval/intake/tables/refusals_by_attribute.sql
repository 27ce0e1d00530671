-- title: Refused, made and ignored by $display
-- section: refusals
-- form: rates
-- rows: $display
-- for: attribute
-- note: As above, each model under its name. Intervals are for people and prompts like these: outputs of one source or prompt are not independent.
WITH b AS (SELECT i.*, 1 AS place, 'Refused' AS what, r.value AS x FROM outcome r JOIN item i USING (item_id)
           WHERE r.who = 'asked' AND i.arm = 'edited'
           UNION ALL SELECT i.*, 2, 'Made', 1 - r.value FROM outcome r JOIN item i USING (item_id) WHERE r.who = 'asked' AND i.arm = 'edited'
           UNION ALL SELECT i.*, 3, 'Ignored, of made', s.value FROM outcome r JOIN item i USING (item_id)
                JOIN outcome s ON s.item_id = r.item_id AND s.measure = 'soft_erasure' AND s.who = 'judges'
           WHERE r.who = 'asked' AND i.arm = 'edited' AND r.value = 0)
SELECT model AS heading, t.level_display AS "row", what AS "column", sum(x) AS k, count(x) AS n,
       rate_low(x, source_id, prompt_id) AS low, rate_high(x, source_id, prompt_id) AS high
FROM b JOIN attribute t ON t.name = '$attribute' AND t.level = b."$attribute"
WHERE source2_id IS NULL
GROUP BY model_key, t.position, place
ORDER BY model_position, t.position, place
