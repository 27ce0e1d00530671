-- title: Sources by $display
-- section: design
-- form: list
-- for: attribute
SELECT t.level_display AS "$display", count(s.source_id) AS "Sources"
FROM attribute t LEFT JOIN source s ON s."$attribute" = t.level
WHERE t.name = '$attribute'
GROUP BY t.position
ORDER BY t.position
