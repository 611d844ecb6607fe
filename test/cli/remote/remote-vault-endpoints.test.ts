/** Endpoints, scans and replacements: the same commands on this machine and at a server. */
import { test } from 'node:test';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { loopbackSetting } from '../../harness/loopback-guard.ts';
import { bothWays, type Step } from '../../harness/processes/both-ways.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { freePort } from '../../harness/processes/port.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { serverAt } from '../../harness/tls-servers.ts';

/** Both servers check endpoints by themselves, too: no list comes before a check. */
const endpoints: readonly Step[] = [
  'endpoint list',
  'endpoint suggest web',
  'endpoint add 127.0.0.1:1 --certificate web --server-name www.example.test',
  'endpoint add 127.0.0.1:1 --certificate web --server-name www.example.test',
  'endpoint add 127.0.0.1:1 --server-name none --interval 5m',
  'endpoint add [::1] --starttls imap --ca bundle.pem',
  'endpoint add 127.0.0.1:1 --certificate wbe',
  'endpoint add 127.0.0.1:1 --ca password.txt',
  'endpoint add https://example.test/ --interval 1m --trust other',
  'endpoint check',
  'endpoint check --certificate web --json',
  'endpoint check 127.0.0.1:1 --state unreachable',
  'endpoint check 127.0.0.1:2',
  'endpoint check --certificate wbe',
  'endpoint list',
  'endpoint list --certificate web',
  'endpoint list --certificate wbe',
  'endpoint list --label team=web --json',
  'endpoint list --label nothing',
  'endpoint list --label team=web --certificate web',
  'endpoint list --state current',
  'endpoint list --state nothing',
  'endpoint update 127.0.0.1:1 --interval 15m',
  'endpoint update 127.0.0.1:1 --server-name none --certificate web',
  'endpoint update 127.0.0.1:1 --server-name none --certificate wbe',
  'endpoint update 127.0.0.1:1 --server-name none',
  'endpoint update ::1 --starttls none',
  'endpoint update [::1]:143 --starttls pop3 --trust public',
  'endpoint check --certificate web',
  'endpoint suggest web --json',
  'endpoint suggest wbe',
  'endpoint remove 127.0.0.1:1',
  'endpoint remove 127.0.0.1:1 --server-name other.example.test',
  'endpoint remove 127.0.0.1:1 --server-name none',
  'endpoint remove 127.0.0.1:1',
  'endpoint remove [::1]:143',
  'endpoint remove [::1]:143',
];

/** `PORT` is that of a server with the certificate of leaf.pem. */
const scans: readonly Step[] = [
  'endpoint scan 192.0.2.0/24',
  'endpoint scan 127.0.13.0/31 --port https --rate 0 --every 1m',
  'endpoint scans',
  'endpoint remove-scan 7',
  'endpoint found',
  'endpoint adopt 127.0.13.1:PORT',
  'endpoint scan 127.0.13.0/31 --port PORT --rate 200',
  'endpoint found',
  'endpoint adopt 127.0.13.1:PORT --issue --private-key leaf.key',
  'endpoint adopt 127.0.13.1:PORT --private-key leaf.key --name bought',
  'endpoint adopt 127.0.13.1:PORT --private-key leaf.key --name bought',
  'endpoint remove 127.0.13.1:PORT',
  'endpoint adopt 127.0.13.1:PORT --issue --name web',
  'endpoint remove 127.0.13.1:PORT',
  'endpoint adopt 127.0.13.1:PORT',
  'endpoint found --all --json',
  'endpoint remove 127.0.13.1:PORT',
  'endpoint remove-scan 1',
  'endpoint found --all',
];

const replacements: readonly Step[] = [
  'replace status',
  'replace start',
  'replace start --key-compromised wbe --dry-run',
  'replace start --key-compromised web --dry-run',
  'replace start --key-compromised wbe --yes',
  'replace cancel 9',
  'replace status 9',
  'replace start --key-compromised web --deadline 0 --wait --yes',
  'replace status',
  'replace status 1',
  'replace cancel 1',
];

test('each command about endpoints, scans and replacements prints the same', needs('openssl'), async (t) => {
  const { leaf } = makeChain(tempDir(t));
  const pem = `${leaf.certificatePem}${leaf.keyPem}`;
  const port = await freePort();
  await serverAt(t, { host: '127.0.13.1', port }, pem);
  const steps = [...scans, ...endpoints, ...replacements].map((step) =>
    typeof step === 'string' ? step.replaceAll('PORT', String(port)) : step,
  );
  const files = { 'bundle.pem': pem, 'leaf.key': leaf.keyPem, 'password.txt': 'söme pässword\n' };
  await bothWays(t, steps, files, { CERTVAULT_ENDPOINT_ALLOW: loopbackSetting });
});
