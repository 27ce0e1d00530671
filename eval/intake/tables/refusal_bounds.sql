-- title: What refusals may hide, by $display
-- section: refusals
-- form: list
-- for: attribute
-- note: A rate of what was made, and what it would be if no refused output, or every one, had the outcome. Where a group is refused more, what is left of its requests may be easier.
WITH a AS (SELECT i.item, i.model, i.model_position, t.level_display, t.position AS place, r.value AS refused
           FROM outcome r JOIN item i USING (item)
                JOIN attribute t ON t.name = '$attribute' AND t.level = i."$attribute"
           WHERE r.who = 'asked' AND i.arm = 'edited' AND i.source2_id IS NULL)
SELECT m.measure_display AS "Outcome", a.model AS "Model", a.level_display AS "$display", count(s.value) AS "Made and judged",
       sum(a.refused) AS "Refused", avg(s.value) AS "Of what was made",
       sum(s.value) / (count(s.value) + sum(a.refused)) AS "If none had it",
       (sum(s.value) + sum(a.refused)) / (count(s.value) + sum(a.refused)) AS "If all had it"
FROM a JOIN measure m ON m.axis IS NOT NULL
       LEFT JOIN outcome s ON s.item = a.item AND s.measure = m.measure AND s.who = 'judges'
GROUP BY m.measure, a.model, a.place
HAVING count(s.value) > 0
ORDER BY m.measure_position, a.model_position, a.place
