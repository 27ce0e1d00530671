-- title: Steps that a cache computed, by $display
-- section: disparity
-- form: list
-- for: attribute
-- note: Of models with a step cache: the share of all steps, of both branches and all gates, that was computed; the others added what an earlier step did. A cache that leaves out more for some is another model for them. Intervals of 95 % by resampling sources, 10,000 times; of fewer than 5 sources none.
SELECT i.model AS "Model", t.level_display AS "$display", count(DISTINCT i.source_id) AS "Sources", count(*) AS "Outputs",
       avg(c.computed) AS "Computed", boot_low(c.computed, i.source_id) AS "Low", boot_high(c.computed, i.source_id) AS "High",
       min(c.computed) AS "Least", max(c.computed) AS "Most"
FROM cached c JOIN item i USING (item) JOIN attribute t ON t.name = '$attribute' AND t.level = i."$attribute"
WHERE i.status = 'made'
GROUP BY i.model_key, t.position
ORDER BY i.model_position, t.position
