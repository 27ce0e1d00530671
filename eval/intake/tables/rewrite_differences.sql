-- title: Words that name a group: differences between groups of $display
-- section: rewriting
-- form: list
-- for: attribute
-- note: Share of texts to which a word of the category was added, the first group's minus the second's. Intervals and p by resampling sources, 10,000 times; Holm's correction within a model and category. None where a group has fewer than 5 sources.
WITH unit AS (SELECT r.model_key, m.display AS model, m.position AS model_position, r.source_id, t.level_display, t.position AS place,
                     g.category, g.position AS at, coalesce(w.what = 'added', 0) AS x
              FROM rewrite r JOIN model m USING (model_key) JOIN source s USING (source_id)
                   JOIN attribute t ON t.name = '$attribute' AND t.level = s."$attribute"
                   JOIN group_word g ON g.level = 'any' AND EXISTS (SELECT 1 FROM rewrite_word e WHERE e.category = g.category AND e.level = 'any')
                   LEFT JOIN rewrite_word w ON w.unit = r.unit AND w.category = g.category AND w.level = 'any'
              WHERE r.failed = 0 AND r.other_language = 0 AND r.source2_id = ''),
     pair AS (SELECT DISTINCT a.model_key, a.place AS first, b.place AS second, a.level_display AS first_display, b.level_display AS second_display
              FROM (SELECT DISTINCT model_key, place, level_display FROM unit) a JOIN (SELECT DISTINCT model_key, place, level_display FROM unit) b
                   ON a.model_key = b.model_key AND a.place < b.place),
     difference AS (SELECT u.model, u.model_position, u.category, u.at, p.first, p.second, p.first_display, p.second_display,
                           avg(CASE WHEN u.place = p.first THEN u.x END) - avg(CASE WHEN u.place = p.second THEN u.x END) AS value,
                           boot_low(u.x, u.source_id, u.place = p.first) AS low, boot_high(u.x, u.source_id, u.place = p.first) AS high,
                           boot_p(u.x, u.source_id, u.place = p.first) AS p
                    FROM pair p JOIN unit u ON u.model_key = p.model_key AND u.place IN (p.first, p.second)
                    GROUP BY u.model_key, u.at, p.first, p.second),
     ranked AS (SELECT *, row_number() OVER (PARTITION BY model_position, category ORDER BY p, first, second) AS place,
                       count(*) OVER (PARTITION BY model_position, category) AS n
                FROM difference WHERE p IS NOT NULL)
SELECT model AS "Model", category AS "Category", first_display || ' - ' || second_display AS "$display", value AS "Difference",
       low AS "Low", high AS "High", p AS "p",
       min(1, max(p * (n - place + 1)) OVER (PARTITION BY model_position, category ORDER BY place)) AS "p (Holm)"
FROM ranked
ORDER BY model_position, at, first, second
