/** Metrics of the executable: where they are, and for whom. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { commandLine } from '../../harness/processes/command-line.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { freePort } from '../../harness/processes/port.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** Serves the certificate `web`, and creates an API key with all scopes. */
async function servedVault(t: TestContext, ...args: readonly string[]) {
  const { data, done } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test', '--key-type', 'ec256');
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'];
  const { stdout } = await done(
    ...[
      'api-key',
      'create',
      '--name=client',
      ...scopes.map((scope) => `--scope=${scope}`),
      '--certificate=*',
    ],
  );
  return { server: await serve(t, data, { args }), key: stdout.trim() };
}

async function ask(url: string, options: RequestInit = {}) {
  const response = await fetch(url, options);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

function tokenFile(t: TestContext, text = 'a-token-for-metrics-alone\n', mode = 0o600): string {
  const path = join(tempDir(t), 'token');
  writeFileSync(path, text, { mode });
  return path;
}

function sampleOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test('/metrics returns 404 without settings, and 401 without the token of --metrics-token-file', async (t) => {
  const without = await serve(t, join(tempDir(t), 'data'));
  assert.equal((await ask(`${without.url}/metrics`)).status, 404);
  const { server, key } = await servedVault(t, '--metrics-token-file', tokenFile(t));
  const get = (headers: Record<string, string>) => ask(`${server.url}/metrics`, { headers });
  for (const headers of [{}, bearer('wrong'), bearer(key), bearer('a-token-for-metrics-alonf')]) {
    const { status, body } = await get(headers);
    assert.equal(status, 401, body);
    assert.doesNotMatch(body, /vault_/);
  }
  const { status, headers, body } = await get(bearer('a-token-for-metrics-alone'));
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  assert.equal(sampleOf(body, 'vault_ready'), 1);
  // It opens nothing else.
  const path = `${server.url}/api/v1/certificates/web`;
  assert.equal((await ask(path, { headers: bearer('a-token-for-metrics-alone') })).status, 401);
});

test(
  '--metrics-listen serves only metrics, and the main listener serves none',
  needs('promtool'),
  async (t) => {
    const place = `127.0.0.1:${await freePort()}`;
    const { server, key } = await servedVault(t, '--metrics-listen', place);
    const path = `${server.url}/api/v1/certificates/web`;
    const { headers } = await ask(`${path}/fullchain.pem`, { headers: bearer(key) });
    await ask(`${path}/fullchain.pem`, {
      headers: { ...bearer(key), 'If-None-Match': String(headers.get('etag')) },
    });
    await ask(`${path}/private.key`, { headers: bearer('vk_none') });
    assert.equal((await ask(`${server.url}/metrics`)).status, 404);
    assert.equal((await ask(`http://${place}/api/v1/health`)).status, 404);
    const { status, body } = await ask(`http://${place}/metrics`);
    assert.equal(status, 200);
    const expected = {
      'vault_downloads_total{artifact="fullchain.pem"}': 1,
      'vault_downloads_not_modified_total{artifact="fullchain.pem"}': 1,
      'vault_authentication_failures_total{reason="key_unknown"}': 1,
      'vault_http_requests_total{route="/api/v1/certificates/{name}/private.key",status="401"}': 1,
      'vault_certificates{status="valid"}': 1,
      vault_api_keys: 1,
    };
    for (const [series, value] of Object.entries(expected))
      assert.equal(sampleOf(body, series), value, series);
    const {
      stdout,
      stderr,
      status: code,
    } = spawnSync('promtool', ['check', 'metrics'], {
      input: body,
      encoding: 'utf8',
    });
    assert.deepEqual([stdout + stderr, code], ['', 0]);
  },
);

for (const [what, text, mode, words] of [
  ['other users can read', 'a-token-for-metrics-alone', 0o644, /is readable by other users/],
  ['is too short', 'short', 0o600, /holds no valid token/],
  ['contains spaces', 'two words in a token', 0o600, /holds no valid token/],
] as const) {
  test(`a metrics token file that ${what} is rejected`, async (t) => {
    const args = ['--metrics-token-file', tokenFile(t, text, mode), '--listen', '127.0.0.1:0'];
    const outcome = await vault(['serve', '--data-dir', join(tempDir(t), 'data'), ...args]);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, words);
  });
}
