-- title: Refused, made and ignored
-- section: refusals
-- form: rates
-- rows: Model
-- note: Baseline arm. Refused and made: of all requests that were answered, placeholders being refused. Ignored: soft erasure by the judges, of what was made and judged. Intervals as in the rates by model.
WITH b AS (SELECT i.*, 1 AS place, 'Refused' AS what, r.value AS x FROM outcome r JOIN item i USING (item_id)
           WHERE r.who = 'asked' AND i.arm = 'edited'
           UNION ALL SELECT i.*, 2, 'Made', 1 - r.value FROM outcome r JOIN item i USING (item_id) WHERE r.who = 'asked' AND i.arm = 'edited'
           UNION ALL SELECT i.*, 3, 'Ignored, of made', s.value FROM outcome r JOIN item i USING (item_id)
                JOIN outcome s ON s.item_id = r.item_id AND s.measure = 'soft_erasure' AND s.who = 'judges'
           WHERE r.who = 'asked' AND i.arm = 'edited' AND r.value = 0)
SELECT experiment AS heading, model AS "row", what AS "column", sum(x) AS k, count(x) AS n,
       rate_low(x, coalesce(source_id, item_id), prompt_id) AS low, rate_high(x, coalesce(source_id, item_id), prompt_id) AS high
FROM b
GROUP BY experiment, model_key, place
ORDER BY experiment, model_position, place
