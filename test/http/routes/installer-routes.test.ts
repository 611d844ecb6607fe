/** GET /client/install.sh and /client/install-ca.sh, and their checksums. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { installerRoutes } from '../../../src/http/routes/installer-routes.ts';
import { installer, trustInstaller } from '../../harness/client/installer.ts';
import { testServer } from '../../harness/http/test-server.ts';

const script = readFileSync(installer, 'utf8');
const trust = readFileSync(trustInstaller, 'utf8');

const serve = (t: TestContext, options: { publicUrl?: string } = {}) => testServer(t, options);

test('the installer scripts have the URL of the request as the default server', async (t) => {
  const { get, url } = await serve(t);
  const response = await get('/client/install.sh');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/x-shellscript; charset=utf-8');
  assert.equal(response.headers.get('cache-control'), 'no-cache');
  assert.equal(await response.text(), script.replace("default_server=''", `default_server='${url}'`));
  const other = await get('/client/install-ca.sh');
  assert.equal(other.headers.get('content-type'), 'text/x-shellscript; charset=utf-8');
  assert.equal(await other.text(), trust.replace("default_server=''", `default_server='${url}'`));
});

test('the public URL takes precedence over the URL of the request as the default server', async (t) => {
  const { get } = await serve(t, { publicUrl: 'https://vault.example/base' });
  assert.match(
    await (await get('/client/install.sh')).text(),
    /^default_server='https:\/\/vault\.example\/base'$/m,
  );
});

test('a matching entity tag returns 304, and the tag changes with the server address', async (t) => {
  const [one, other] = [await serve(t), await serve(t)];
  const etag = (await one.get('/client/install.sh')).headers.get('etag') ?? '';
  const again = await one.get('/client/install.sh', undefined, {
    headers: { 'If-None-Match': `"x", W/${etag}` },
  });
  assert.equal(again.status, 304);
  assert.equal(again.headers.get('etag'), etag);
  const elsewhere = await other.get('/client/install.sh', undefined, { headers: { 'If-None-Match': etag } });
  assert.equal(elsewhere.status, 200);
});

test('the checksum is that of the bytes this caller gets', async (t) => {
  const { get } = await serve(t);
  for (const file of ['install.sh', 'install-ca.sh']) {
    const bytes = Buffer.from(await (await get(`/client/${file}`)).arrayBuffer());
    const response = await get(`/client/${file}.sha256`);
    assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(await response.text(), `${createHash('sha256').update(bytes).digest('hex')}  ${file}\n`);
  }
});

test('an invalid Host header is not inserted into the script', async (t) => {
  const { url } = await serve(t);
  for (const host of ["x';id;'", '$(id)', 'a$b']) {
    const body = await new Promise<string>((resolve, reject) => {
      const asked = request(new URL('/client/install.sh', url), { headers: { Host: host } }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      });
      asked.on('error', reject).end();
    });
    assert(body === script, host);
  }
});

test('installerRoutes throws for a script without the default_server line', () => {
  const empty = '#!/bin/sh\n';
  assert.throws(
    () => installerRoutes({ installer: empty, trust }),
    /^Error: install\.sh needs exactly one line/,
  );
  assert.throws(
    () => installerRoutes({ installer: script, trust: empty }),
    /^Error: install-ca\.sh needs exactly one line default_server=''/,
  );
});
