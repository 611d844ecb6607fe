/** Settings in the environment, beside the variables of HashiCorp's vault on the same machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settingVariables } from '../../../src/cli/settings/setting-variables.ts';
import { commonOptions, readSettings, serveOptions } from '../../../src/cli/settings/settings.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { serve } from '../../harness/processes/vault-process.ts';

/** What somebody who works with HashiCorp's vault has exported. */
const hashicorp = {
  VAULT_ADDR: 'https://vault.example.test:8200',
  VAULT_CACERT: '/nowhere/ca.pem',
  VAULT_CAPATH: '/nowhere',
  VAULT_CLIENT_CERT: '/nowhere/client.pem',
  VAULT_CLIENT_KEY: '/nowhere/client.key',
  VAULT_CLIENT_TIMEOUT: '5s',
  VAULT_FORMAT: 'json',
  VAULT_LOG_FORMAT: 'json',
  VAULT_LOG_LEVEL: 'trace',
  VAULT_MAX_RETRIES: '2',
  VAULT_NAMESPACE: 'admin/',
  VAULT_RATE_LIMIT: '10:20',
  VAULT_SKIP_VERIFY: 'true',
  VAULT_TLS_SERVER_NAME: 'vault.example.test',
  VAULT_TOKEN: 'hvs.not-for-this-vault',
};

/** Those of its server, its agent and its container image. */
const more =
  'VAULT_AGENT_ADDR VAULT_API_ADDR VAULT_CLI_NO_COLOR VAULT_CLUSTER_ADDR VAULT_CONFIG_PATH VAULT_DETAILED ' +
  'VAULT_DEV_LISTEN_ADDRESS VAULT_DEV_ROOT_TOKEN_ID VAULT_DISABLE_MLOCK VAULT_DISABLE_REDIRECTS VAULT_HEADERS ' +
  'VAULT_HTTP_PROXY VAULT_LICENSE VAULT_LICENSE_PATH VAULT_LOCAL_CONFIG VAULT_LOG_FILE VAULT_MFA VAULT_PROXY_ADDR ' +
  'VAULT_RAFT_NODE_ID VAULT_RAFT_PATH VAULT_REDIRECT_ADDR VAULT_SEAL_TYPE VAULT_SRV_LOOKUP VAULT_UI VAULT_WRAP_TTL';

test('no setting but the log level has a variable that HashiCorp uses', () => {
  const theirs = new Set([...Object.keys(hashicorp), ...more.split(' ')]);
  const names = Object.keys({ ...commonOptions, ...serveOptions });
  const both = names.filter((name) => settingVariables(name).some((variable) => theirs.has(variable)));
  assert.deepEqual(both, ['log-level']);
});

const levels: [environment: Record<string, string>, level: string, ignored: string[]][] = [
  [{ VAULT_LOG_LEVEL: 'warn' }, 'warn', []],
  [{ VAULT_LOG_LEVEL: 'trace' }, 'info', ['VAULT_LOG_LEVEL']],
  [{ VAULT_LOG_LEVEL: 'warning' }, 'info', ['VAULT_LOG_LEVEL']],
  [{ VAULT_LOG_LEVEL: '' }, 'info', []],
  [{ CERTVAULT_LOG_LEVEL: 'error', VAULT_LOG_LEVEL: 'debug' }, 'error', []],
  [{ CERTVAULT_LOG_LEVEL: 'error', VAULT_LOG_LEVEL: 'trace' }, 'error', []],
  [{ CERTVAULT_LOG_LEVEL: '', VAULT_LOG_LEVEL: 'debug' }, 'debug', []],
];

for (const [environment, level, ignored] of levels) {
  test(`${JSON.stringify(environment)} sets the log level ${level}`, async () => {
    const settings = await readSettings({}, environment);
    assert.deepEqual([settings.logLevel, settings.ignoredVariables], [level, ignored]);
  });
}

test('CERTVAULT_ variables take precedence over VAULT_ variables', async () => {
  const first = await readSettings(
    {},
    { CERTVAULT_DATA_DIR: '/own', VAULT_DATA_DIR: '/short', VAULT_LISTEN: '127.0.0.1:1' },
  );
  assert.deepEqual([first.dataDir, first.listen.port], ['/own', 1]);
});

test('an invalid value is rejected in CERTVAULT_ variables, and in VAULT_ variables that HashiCorp does not use', async () => {
  const refused = (environment: Record<string, string>, message: string) =>
    assert.rejects(readSettings({}, environment), { message });
  await refused({ CERTVAULT_LOG_LEVEL: 'trace' }, 'CERTVAULT_LOG_LEVEL: "trace" is not a log level');
  await refused({ VAULT_LISTEN: 'here' }, 'VAULT_LISTEN: "here" is not an address to listen on');
});

test('commands ignore the variables of HashiCorp Vault silently; the server logs one warning', async (t) => {
  const line = commandLine(t, { environment: hashicorp });
  const created = await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  assert.doesNotMatch(created.stderr, /LOG_LEVEL/);
  assert.equal((await line.done('certificate', 'list')).stderr, '');
  const server = await serve(t, line.data, { environment: hashicorp });
  assert.equal((await server.end()).code, 0);
  const warnings = server
    .log()
    .split('\n')
    .filter((text) => text.includes('LOG_LEVEL'))
    .map((text) => JSON.parse(text));
  assert.equal(warnings.length, 1);
  const { level, msg, variable, use } = warnings[0];
  assert.deepEqual(
    { level, msg, variable, use },
    {
      level: 'warn',
      msg: 'environment variable ignored; its value is one for HashiCorp Vault',
      variable: 'VAULT_LOG_LEVEL',
      use: 'CERTVAULT_LOG_LEVEL',
    },
  );
  assert.doesNotMatch(server.log(), /hvs\.|nowhere/);
});
