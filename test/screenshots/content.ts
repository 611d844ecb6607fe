/**
 * A vault as one finds it after a few months, for pictures. What it holds is made by the executable itself; how old it
 * is, and what a CA said, is written into its database then. Names and ages are the same in each run.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { vault } from '../harness/processes/vault-process.ts';

const hour = 3_600_000;
const day = 24 * hour;

export const person = { name: 'alice', password: 'nine green bottles on a wall' };

type Certificate = {
  readonly name: string;
  readonly domains: string;
  /** Whose it seems to be: an ACME CA's, the private CA's, or imported. */
  readonly from: 'letsencrypt' | 'local-ca' | 'import';
  /** Days since its version was made, and how many it lasts in all. */
  readonly age: number;
  readonly lifetime: number;
  readonly state?: 'failing' | 'disabled' | 'pending';
};

const certificates: readonly Certificate[] = [
  {
    name: 'www.example.com',
    domains: 'www.example.com example.com',
    from: 'letsencrypt',
    age: 12,
    lifetime: 90,
  },
  { name: 'api.example.com', domains: 'api.example.com', from: 'letsencrypt', age: 31, lifetime: 90 },
  {
    name: 'status.example.com',
    domains: 'status.example.com',
    from: 'letsencrypt',
    age: 72,
    lifetime: 90,
    state: 'failing',
  },
  {
    name: 'mail.example.com',
    domains: 'mail.example.com imap.example.com smtp.example.com',
    from: 'letsencrypt',
    age: 44,
    lifetime: 90,
  },
  { name: 'wildcard.apps', domains: '*.apps.example.com', from: 'letsencrypt', age: 3, lifetime: 90 },
  {
    name: 'shop.example.com',
    domains: 'shop.example.com',
    from: 'letsencrypt',
    age: 0,
    lifetime: 90,
    state: 'pending',
  },
  { name: 'partner-portal', domains: 'portal.partner.example', from: 'import', age: 371, lifetime: 365 },
  { name: 'legacy-erp', domains: 'erp.example.com', from: 'import', age: 347, lifetime: 365 },
  { name: 'db-primary', domains: 'db1.internal 10.20.0.11', from: 'local-ca', age: 20, lifetime: 60 },
  { name: 'db-replica', domains: 'db2.internal 10.20.0.12', from: 'local-ca', age: 26, lifetime: 60 },
  { name: 'grafana', domains: 'grafana.internal', from: 'local-ca', age: 6, lifetime: 30 },
  {
    name: 'build-cache',
    domains: 'cache.build.internal',
    from: 'local-ca',
    age: 40,
    lifetime: 90,
    state: 'disabled',
  },
];

const apiKeys = [
  { name: 'web-1', certificates: ['www.example.com', 'api.example.com'], ip: '203.0.113.17', hours: 3 },
  { name: 'web-2', certificates: ['www.example.com', 'api.example.com'], ip: '203.0.113.18', hours: 3 },
  { name: 'mail-1', certificates: ['mail.example.com'], ip: '203.0.113.25', hours: 7 },
  { name: 'postgres hosts', certificates: ['db-primary', 'db-replica'], ip: '10.20.0.11', hours: 11 },
  { name: 'monitoring', certificates: ['*'], ip: '10.20.0.40', hours: 0.1 },
] as const;

/** Jobs of clients: the certificates of each host, and how long ago it reported, in hours. */
const hosts = [
  { host: 'web-1', key: 'web-1', certificates: ['www.example.com', 'api.example.com'], hours: 3 },
  {
    host: 'web-2',
    key: 'web-2',
    certificates: ['www.example.com', 'api.example.com'],
    hours: 3,
    fails: true,
  },
  { host: 'mail-1', key: 'mail-1', certificates: ['mail.example.com'], hours: 7 },
  { host: 'db1.internal', key: 'postgres hosts', certificates: ['db-primary'], hours: 11 },
  { host: 'db2.internal', key: 'postgres hosts', certificates: ['db-replica'], hours: 5 * 24 },
] as const;

/** What servers serve: the version of the certificate, or else what is wrong. */
const endpoints = [
  { address: 'www.example.com', port: 443, certificate: 'www.example.com', lifetime: 90, age: 12 },
  { address: 'example.com', port: 443, certificate: 'www.example.com', lifetime: 90, age: 12 },
  {
    ...{ address: '203.0.113.18', port: 443, name: 'www.example.com', certificate: 'www.example.com' },
    ...{ isOther: true, lifetime: 90, age: 79 },
  },
  {
    address: 'mail.example.com',
    port: 25,
    certificate: 'mail.example.com',
    protocol: 'smtp',
    lifetime: 90,
    age: 44,
  },
  {
    address: 'db1.internal',
    port: 5432,
    certificate: 'db-primary',
    protocol: 'postgres',
    lifetime: 60,
    age: 20,
  },
  {
    ...{ address: 'api.example.com', port: 443, certificate: 'api.example.com', lifetime: 90, age: 31 },
    problem: 'the intermediate certificate of the chain is missing',
  },
  { address: 'portal.partner.example', port: 443, certificate: null, lifetime: 365, age: 356 },
] as const;

/** Deploy targets with their certificates; one of them fails. */
const targets = [
  {
    name: 'balancer',
    type: 'ssh',
    host: 'balancer.example.com',
    certificates: ['www.example.com', 'api.example.com'],
  },
  { name: 'edge-firewall', type: 'fortigate', host: '10.20.0.1', certificates: ['wildcard.apps'] },
  { name: 'storage', type: 'synology', host: 'nas.internal:5001', certificates: ['grafana'] },
] as const;

const words =
  'status.example.com could not be proved by http-01: urn:ietf:params:acme:error:unauthorized: 198.51.100.24: ' +
  'Invalid response from http://status.example.com/.well-known/acme-challenge/7kq0…: 404';

/** Makes everything, before the vault is served. */
export async function fill(dataDir: string): Promise<void> {
  const run = async (input: string, ...args: readonly string[]) => {
    const ended = await vault([...args, '--data-dir', dataDir], { input });
    if (ended.code !== 0) throw new Error(`vault ${args.join(' ')}: ${ended.stderr}`);
  };
  for (const name of [person.name, 'bob'])
    await run(`${person.password}\n`, 'admin', 'create', '--name', name, '--password-stdin');
  for (const { name, domains } of certificates) {
    const wanted = domains.split(' ').flatMap((domain) => ['--domain', domain]);
    await run('', 'certificate', 'create', '--name', name, ...wanted);
  }
  const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
  for (const { name, certificates } of apiKeys) {
    const names = certificates.flatMap((certificate) => ['--certificate', certificate]);
    await run('', 'api-key', 'create', '--name', name, ...scopes, ...names);
  }
  const rack = ['--name', 'rack-4', '--certificate', 'www.example.com', '--uses', '20', '--expires-at', '7d'];
  await run('', 'enrollment', 'create', ...rack, '--allow-ip', '203.0.113.0/24');
  const secrets = join(dataDir, 'token.json');
  writeFileSync(secrets, JSON.stringify({ api_token: 'not-a-real-token-at-all' }), { mode: 0o600 });
  const zones = ['--zone', 'example.com', '--zone', 'apps.example.com'];
  await run(
    '',
    'dns-provider',
    'add',
    '--name',
    'cloudflare',
    '--type',
    'cloudflare',
    ...zones,
    '--secret-file',
    secrets,
  );
}

/** Makes it old. The vault must be running: at its start it would plan everything anew, and then do it. */
export function age(dataDir: string, now: number): void {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { timeout: 5000 });
  const run = (sql: string, values: object = {}) => database.prepare(sql).run({ now, ...values });
  try {
    database.transaction(() => {
      addIssuer(run, now);
      for (const certificate of certificates) ageOne(run, certificate, now);
      ageKeysAndEvents(run, now);
      for (const host of hosts) addDeployments(run, host, now);
      for (const endpoint of endpoints) addEndpoint(run, endpoint, now);
      for (const target of targets) addTarget(run, target, now);
    })();
  } finally {
    database.close();
  }
}

type Run = (sql: string, values?: object) => unknown;

function addIssuer(run: Run, now: number): void {
  const directory = 'https://acme-v02.api.letsencrypt.org/directory';
  const at = { at: now - 140 * day, directory };
  run(`insert into issuers (name, type, created_at) values ('letsencrypt', 'acme', @at)`, at);
  run(
    `insert into acme_accounts (issuer, directory_url, account_url, email, status, sealed_private_key, created_at)
     values ('letsencrypt', @directory, 'https://acme-v02.api.letsencrypt.org/acme/acct/1', 'ops@example.com', 'valid', x'00', @at)`,
    at,
  );
  run(
    `insert into acme_issuers (issuer_id, directory_url, email, terms_of_service, account_id)
     select id, @directory, 'ops@example.com', 'https://letsencrypt.org/documents/LE-SA-v1.5.pdf', 1 from issuers where name = 'letsencrypt'`,
    at,
  );
}

function ageOne(run: Run, { name, from, age, lifetime, state }: Certificate, now: number): void {
  const made = now - age * day - 2 * hour;
  const end = made + lifetime * day;
  const third = Math.max(end - (lifetime / 3) * day, now + 9 * hour);
  const at = { name, from, made, end, third, born: now - 138 * day };
  run(
    `update certificates set created_at = @born, next_renewal_at = @third, ari_check_at = @now + 86400000,
       issuer_id = (select id from issuers where name = @from) where name = @name`,
    at,
  );
  const version = `where certificate_id = (select id from certificates where name = @name)`;
  const source = from === 'letsencrypt' ? 'acme' : from;
  run(
    `update certificate_versions set not_before = @made, not_after = @end, created_at = @made, source = @source ${version}`,
    { ...at, source },
  );
  if (from === 'letsencrypt')
    run(`update certificate_versions set issuer = 'C=US, O=Let''s Encrypt, CN=E7' ${version}`, at);
  if (from === 'import')
    run(`update certificate_versions set issuer = 'C=GB, O=Sectigo Limited, CN=R36' ${version}`, at);
  if (state === 'disabled') run('update certificates set disabled_at = @now where name = @name', at);
  if (state === 'failing') {
    run(
      `update certificates set last_error = @words, last_attempt_at = @now - 2400000, failed_attempts = 3,
         retry_after = null where name = @name`,
      { ...at, words },
    );
  }
  if (state === 'pending') {
    run(`delete from certificate_versions ${version}`, at);
    run('update certificates set current_version = null, created_at = @now - 9000 where name = @name', at);
  }
  addRenewal(
    run,
    { name, from, age, lifetime, ...(state && { state }) },
    state === 'failing' ? now - 40 * 60_000 : made,
  );
}

function addRenewal(
  run: Run,
  { name, from, state, domains }: Omit<Certificate, 'domains'> & { domains?: string },
  at: number,
): void {
  if (from !== 'letsencrypt') return;
  const domain = domains ?? name;
  const texts = [
    'contacting letsencrypt: directory and account',
    'creating an order at letsencrypt',
    `validating ${domain} with http-01`,
    'waiting for letsencrypt to complete the validation',
    ...(state === undefined
      ? ['finalizing the order', 'waiting for letsencrypt to issue', 'downloading the certificate']
      : []),
  ];
  const began = state === 'pending' ? at + 2 * hour - 8000 : at;
  const steps = texts.map((text, index) => ({ at: began + 300 + index * 900, text }));
  const status = state === 'failing' ? 'failed' : state === 'pending' ? 'running' : 'succeeded';
  run(
    `insert into renewals (certificate_id, status, requested_by, requested_at, started_at, finished_at, version, error, issuer_id,
       steps, lease_owner, lease_expires_at)
     select id, @status, 'system', @began, @began + 200, @finished, @version, @error, issuer_id, @steps, @owner, @lease
     from certificates where name = @name`,
    {
      name,
      began,
      status,
      finished: status === 'running' ? null : began + 8000,
      version: status === 'succeeded' ? 1 : null,
      error: status === 'failed' ? words : null,
      steps: JSON.stringify(steps),
      owner: status === 'running' ? 'elsewhere' : null,
      lease: status === 'running' ? at + 24 * hour : null,
    },
  );
}

function ageKeysAndEvents(run: Run, now: number): void {
  run(
    'update audit_events set at = @now - 5 * 86400000 - (select max(id) from audit_events) * 60000 + id * 60000',
  );
  run('update administrators set created_at = @now - 138 * 86400000, last_signed_in_at = @now - 93600000');
  run('update dns_providers set created_at = @now - 120 * 86400000');
  for (const [index, { name, certificates, ip, hours }] of apiKeys.entries()) {
    const at = now - hours * hour;
    run(
      'update api_keys set created_at = @now - 130 * 86400000, last_used_at = @at, last_used_ip = @ip where name = @name',
      { name, at, ip },
    );
    const [certificate = ''] = certificates;
    if (certificate === '*') continue;
    for (const artifact of ['fullchain.crt', 'private.key']) {
      run(
        `insert into audit_events (at, actor, action, resource, detail, ip, request_id)
         values (@at, @actor, 'certificate.download', @resource, @detail, @ip, @request)`,
        {
          at: at + (artifact === 'private.key' ? 400 : 0),
          actor: `api-key:${index + 1}:${name}`,
          resource: `certificate:${certificate}`,
          detail: JSON.stringify({ artifact, version: 1 }),
          ip,
          request: `5f3c9a${index}${artifact.length}`,
        },
      );
    }
  }
}

function addDeployments(
  run: Run,
  { host, key, certificates, hours, ...rest }: (typeof hosts)[number],
  now: number,
): void {
  const seen = now - hours * hour;
  for (const [index, certificate] of certificates.entries()) {
    const fails = 'fails' in rest && index === 0;
    run(
      `insert into deployments (certificate_id, api_key_id, name, host, job, destination, version, reload, reload_output,
         next_run_at, created_at, changed_at, last_seen_at, silent_at)
       select certificates.id, api_keys.id, @id, @host, @job, '/etc/ssl/vault', 1, @reload, @output,
         @seen + 86400000, @seen - 30 * 86400000, @seen, @seen, @seen + 2 * 86400000 + 3600000
       from certificates, api_keys where certificates.name = @certificate and api_keys.name = @key`,
      {
        ...{ certificate, key, host, seen, id: `${certificate}.${host}`, job: certificate },
        reload: fails ? 'failed' : 'ok',
        output: fails ? 'nginx: configuration file /etc/nginx/nginx.conf test failed' : null,
      },
    );
  }
}

function addEndpoint(
  run: Run,
  { address, port, certificate, age: days, lifetime, ...rest }: (typeof endpoints)[number],
  now: number,
): void {
  const isOther = 'isOther' in rest || certificate === null;
  const begin = now - days * day;
  const name = 'name' in rest ? rest.name : address;
  run(
    `insert into endpoints (certificate_id, host, port, server_name, starttls, trust, check_every, created_at, next_check_at,
       checked_at, version, fingerprint_sha256, issuer, names, not_before, not_after, tls_version, chain_complete, ocsp_stapled,
       problem, changed_at)
     values ((select id from certificates where name = @certificate), @address, @port, @name, @protocol, 'auto', 3600000,
       @begin, @now + 86400000, @now - 1260000, @version, coalesce((select fingerprint_sha256 from certificate_versions
       join certificates on certificates.id = certificate_id where name = @certificate and @version = version), @name),
       'CN=E7, O=Let''s Encrypt, C=US', @names, @begin, @end, 'TLSv1.3', 1, 0, @problem, @begin)`,
    {
      ...{ certificate, address, port, name, begin, end: begin + lifetime * day },
      protocol: 'protocol' in rest ? rest.protocol : null,
      version: isOther ? null : 1,
      names: JSON.stringify([name]),
      problem: 'problem' in rest ? rest.problem : null,
    },
  );
}

function addTarget(
  run: Run,
  { name, type, host, certificates }: (typeof targets)[number],
  now: number,
): void {
  const born = now - 40 * day;
  run(
    `insert into deploy_targets (name, type, host, sealed_settings, created_at, changed_at)
     values (@name, @type, @host, x'00', @born, @born)`,
    { name, type, host, born },
  );
  for (const certificate of certificates) {
    const fails = certificate === 'api.example.com';
    const destination = type === 'ssh' ? `/etc/haproxy/tls/${certificate}.pem` : certificate;
    const values = { ...{ name, host, certificate, destination, born }, id: `deploy-target:${name}` };
    const error = 'command failed: haproxy.service is not active, cannot reload';
    run(
      `insert into deploy_target_certificates (deploy_target_id, certificate_id, destination, attempts, error, due_at)
       select deploy_targets.id, certificates.id, @destination, @attempts, @error, @due
       from deploy_targets, certificates where deploy_targets.name = @name and certificates.name = @certificate`,
      {
        ...values,
        attempts: fails ? 2 : 0,
        error: fails ? error : null,
        due: now + (fails ? 4 * 60_000 : 17 * hour),
      },
    );
    run(
      `insert into deployments (certificate_id, deploy_target_id, name, host, job, destination, version, reload,
         reload_output, created_at, changed_at, last_seen_at, silent_at)
       select certificates.id, deploy_targets.id, @id, @host, @name, @destination, 1, @reload, @output, @born, @born,
         @seen, 253402300799999
       from deploy_targets, certificates where deploy_targets.name = @name and certificates.name = @certificate`,
      {
        ...{ ...values, seen: now - 7 * hour, reload: fails ? 'failed' : 'ok' },
        output: fails ? 'haproxy.service is not active, cannot reload' : null,
      },
    );
  }
}
