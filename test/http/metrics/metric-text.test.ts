/** The text of metrics: families together, names and values as they may be written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metricText, seriesName } from '../../../src/http/metrics/metric-text.ts';

test('metricText groups series and histograms by family below HELP and TYPE, and omits unknown families', () => {
  const families = { a_total: ['counter', 'As.\nMany.'], b: ['histogram', 'B\\s.'] } as const;
  const series = { 'a_total{x="1"}': 1, b_sum: 0.5, 'a_total{x="2"}': 2, b_count: 3, other: 4 };
  assert.equal(
    metricText(families, series),
    '# HELP a_total As.\\nMany.\n# TYPE a_total counter\na_total{x="1"} 1\na_total{x="2"} 2\n' +
      '# HELP b B\\\\s.\n# TYPE b histogram\nb_sum 0.5\nb_count 3\n',
  );
});

test('seriesName escapes label values', () => {
  assert.equal(seriesName('up'), 'up');
  assert.equal(seriesName('up', { name: 'a"b\\c\nd', n: 1 }), 'up{name="a\\"b\\\\c\\nd",n="1"}');
});
