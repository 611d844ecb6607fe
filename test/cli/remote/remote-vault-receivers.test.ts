/**
 * ACME clients, enrollments, notification channels and deploy targets: the same commands on this machine and at a
 * server.
 */
import { test } from 'node:test';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { fakeChatApi } from '../../harness/notifications/fake-chat-api.ts';
import { bothWays } from '../../harness/processes/both-ways.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const clients = [
  'acme-client list',
  'acme-client create --name caddy --domain *.example.test',
  'acme-client create --name caddy --domain *.example.test',
  'acme-client create --name www --domain www.example.test --allow-ip 192.0.2.0/24 --expires-at 90d --json',
  'acme-client create --name bad --domain www.example.test --issuer nothing',
  'acme-client list',
  'acme-client create --name tagged --domain tagged.example.test --label team=web',
  'acme-client list --label team=web',
  'acme-client update tagged --label team=db',
  'acme-client show tagged',
  'acme-client list --json',
  'acme-client show cady',
  'acme-client show caddy',
  'acme-client show 2 --json',
  'acme-client show 9',
  'acme-client update caddy --rate 20 --validate http-01,dns-01',
  'acme-client update caddy --rate 20 --validate http-01,dns-01',
  'acme-client update www --expires-at none --allow-ip * --json',
  'acme-client update www --name caddy',
  'acme-client update www --expires-at 2001-01-01',
  'acme-client rotate caddy',
  'acme-client delete caddy',
  'acme-client revoke caddy',
  'acme-client revoke caddy',
  'acme-client rotate caddy',
  'acme-client delete caddy --yes',
  'acme-client delete caddy',
];

test('each command about ACME clients prints the same', (t) => bothWays(t, clients));

const enrollments = [
  'enrollment list',
  'enrollment create --name rack --certificate * --uses 20 --expires-at 2099-01-01',
  'enrollment create --name rack --certificate ww --expires-at 2099-01-01',
  'enrollment create --name rack --certificate * --expires-at 2001-01-01',
  'enrollment create --certificate-label team=web --expires-at 2099-01-01 --key-expires-at 2098-01-01',
  'enrollment create --name rack-4 --certificate-label team=web --allow-ip 192.0.2.0/24 --bind-address ' +
    '--expires-at 2099-01-01 --key-expires-at 2099-02-01 --label team=web --scope certificates:read --json',
  'enrollment list',
  'enrollment list --json --label team=web',
  'enrollment list --label team=db',
  'enrollment show rack',
  'enrollment show 2 --json',
  'enrollment show rak',
  'enrollment show 9',
  'enrollment delete rack --yes',
  'enrollment revoke rack',
  'enrollment revoke rack --with-keys',
  'enrollment revoke 9',
  'enrollment delete rack --yes',
  'enrollment delete rack --yes',
];

test('each command about enrollments prints the same', (t) => bothWays(t, enrollments));

test('each command about notifications prints the same', async (t) => {
  const { origin } = await fakeChatApi(t);
  const files = {
    'url.txt': `${origin}/services/s3cret\n`,
    'bot.txt': '1:s3cret\n',
    'token.txt': 's3cret\n',
    'key.txt': `${'k3y'.padEnd(32, '0')}\n`,
    'new.json': JSON.stringify({ url: `${origin}/other` }),
  };
  const secret = (name: string) => `--secret-file ${name}`;
  await bothWays(
    t,
    [
      'notification list',
      `notification add webhook --channel hook --url ${origin}/hook --certificate web* --event all`,
      `notification add webhook --channel hook --url ${origin}/hook`,
      `notification add webhook --channel other --url ${origin}/hook --event nothing`,
      'notification add webhook --channel other --url not-a-url',
      `notification add slack --channel slack ${secret('url.txt')} --event none --digest 07:00`,
      `notification add teams --channel teams ${secret('url.txt')}`,
      `notification add discord --channel discord ${secret('url.txt')}`,
      `notification add telegram --channel telegram --url ${origin} --chat=-1001 --thread 4 ${secret('bot.txt')}`,
      `notification add ntfy --channel ntfy --url ${origin} --topic vault ${secret('token.txt')}`,
      `notification add gotify --channel gotify --url ${origin} ${secret('token.txt')}`,
      `notification add pagerduty --channel pagerduty --url ${origin} ${secret('key.txt')}`,
      `notification add opsgenie --channel opsgenie --url ${origin} ${secret('token.txt')}`,
      'notification add email --channel mail --server mail.example.test:587 --from vault@example.test --to ops@example.test',
      'notification add email --channel mail2 --server mail.example.test',
      'notification test --channel hook',
      'notification test --channel hok',
      'notification list',
      'notification update --channel hook --certificate-label team=web --label env=test',
      'notification list --json',
      'notification update --channel hook --disable',
      'notification update --channel hook --enable --secret-file new.json',
      'notification update --channel hok --disable',
      'notification update --channel slack --secret-file token.txt',
      'notification log',
      'notification log --channel hook --json',
      'notification log --channel hok',
      'notification log --failed',
      'notification remove --channel ntfy',
      'notification remove --channel ntfy',
    ],
    files,
  );
});

test('each command about deploy targets prints the same', needs('openssl'), async (t) => {
  const { leaf } = makeChain(tempDir(t));
  const { url } = await webhookReceiver(t);
  const secret = `whsec_${'k3y'.padEnd(32, '0')}`;
  const files = {
    'leaf.pem': `${leaf.certificatePem}${leaf.keyPem}`,
    'shop.json': JSON.stringify({ url, secret }),
    'closed.json': JSON.stringify({ url: 'http://127.0.0.1:1/', secret }),
    'wrong.json': JSON.stringify({ url, secrat: 's3cret' }),
  };
  const add = 'deploy-target add --type webhook --secret-file';
  // Both servers install by themselves, too: no list comes before a run.
  await bothWays(
    t,
    [
      'deploy-target list',
      'certificate import --name web --fullchain leaf.pem',
      'certificate import --name api --fullchain leaf.pem',
      `${add} wrong.json --name shop --certificate web`,
      `${add} shop.json --name shop --certificate wbe`,
      `${add} shop.json --name shop --certificate web`,
      `${add} shop.json --name shop`,
      'deploy-target run --name shop',
      'deploy-target run --name shop --certificate api',
      'deploy-target update --name shop --add-certificate wbe',
      'deploy-target update --name shop --remove-certificate api',
      'deploy-target update --name shop --add-certificate api',
      'deploy-target run --name shop --certificate api --json',
      'deploy-target show --name shop',
      'deploy-target show --name shup',
      'deploy-target list',
      'deploy-target list --json',
      'deploy-target update --name shop --secret-file wrong.json',
      'deploy-target update --name shop --remove-certificate web --secret-file closed.json',
      'deploy-target run --name shop',
      'deploy-target remove --name shop',
      'deploy-target remove --name shop',
    ],
    files,
  );
});
