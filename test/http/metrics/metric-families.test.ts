/** The dashboard and the alert rules ask for metrics that are really exported, and Prometheus itself takes both. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { metricFamilies } from '../../../src/http/metrics/metric-families.ts';
import { processMetrics } from '../../../src/http/metrics/process-metrics.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'docs', 'monitoring');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

test('each metric in the dashboard and rules is exported, and each vault metric is in them or listed as unused', async () => {
  const { families } = await processMetrics();
  const known = new Set([...Object.keys(metricFamilies), ...Object.keys(families)]);
  const dashboard = read('grafana-dashboard.json');
  const rules = read('alert-rules.yml');
  const named = new Set<string>();
  for (const [word] of (dashboard + rules).matchAll(
    /\b(certificate_vault|vault|process|nodejs)_[a-z0-9_]+\b/g,
  )) {
    const name = known.has(word) ? word : word.replace(/_(bucket|sum|count)$/, '');
    assert.ok(known.has(name), `${word} is not exported`);
    named.add(name);
  }
  const left = Object.keys(metricFamilies).filter((name) => !named.has(name));
  assert.deepEqual(
    left,
    [
      'vault_check_ok',
      'vault_certificate_issued_timestamp_seconds',
      'vault_last_issued_timestamp_seconds',
    ].filter((name) => left.includes(name)),
  );
});

test('the dashboard has panels that do not overlap, each with a query', () => {
  type Panel = {
    id: number;
    gridPos: { x: number; y: number; w: number; h: number };
    targets: { expr: string }[];
  };
  const { panels } = JSON.parse(read('grafana-dashboard.json')) as { panels: Panel[] };
  assert.ok(panels.length > 20);
  const taken = new Map<string, number>();
  for (const {
    id,
    gridPos: { x, y, w, h },
    targets,
  } of panels) {
    assert.ok(targets.length > 0 && targets.every(({ expr }) => expr.length > 0), `panel ${id}`);
    assert.ok(x + w <= 24, `panel ${id} is too wide`);
    for (let dx = 0; dx < w; dx++) {
      for (let dy = 0; dy < h; dy++) {
        const place = `${x + dx} ${y + dy}`;
        assert.equal(taken.get(place), undefined, `panels ${id} and ${taken.get(place)} overlap`);
        taken.set(place, id);
      }
    }
  }
});

test('promtool accepts the alert rules, and their tests pass', needs('promtool'), () => {
  for (const [words, file] of [
    ['check', 'alert-rules.yml'],
    ['test', 'alert-rules.test.yml'],
  ] as const) {
    const { status, stdout, stderr } = spawnSync('promtool', [words, 'rules', join(folder, file)], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
  }
});
