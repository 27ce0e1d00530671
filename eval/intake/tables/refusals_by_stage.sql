-- title: Where requests were refused, by $display
-- section: refusals
-- form: rates
-- rows: $display
-- for: attribute
-- note: Baseline arm. Of the requests that were answered: refused before a picture was made, at the picture, or by a placeholder; faults are of all requests. Intervals take each request as independent (Wilson; Clopper-Pearson for five or fewer): those of the differences above do not.
WITH a AS (SELECT i.model, i.model_key, i.model_position, t.position, t.level_display, w.outcome, w.stage
           FROM answer w JOIN item i USING (item)
                JOIN attribute t ON t.name = '$attribute' AND t.level = i."$attribute"
           WHERE i.arm = 'edited' AND i.source2_id IS NULL),
     kinds(place, what) AS (VALUES (1, 'At the request'), (2, 'At the picture'), (3, 'Placeholder'), (4, 'Refused'), (5, 'Faults'))
SELECT heading, "row", "column", k, n, share_low(k, n) AS low, share_high(k, n) AS high
FROM (SELECT model AS heading, level_display AS "row", what AS "column", model_position, position, place,
             sum(CASE place WHEN 1 THEN outcome = 'refused' AND stage IS NOT 'output'
                            WHEN 2 THEN outcome = 'refused' AND stage IS 'output'
                            WHEN 3 THEN outcome = 'placeholder'
                            WHEN 4 THEN outcome IN ('refused', 'placeholder')
                            ELSE outcome = 'fault' END) AS k,
             sum(place = 5 OR outcome <> 'fault') AS n
      FROM a JOIN kinds
      GROUP BY model_key, position, place)
ORDER BY model_position, position, place
