/** What happened in the vault of `vault demo`, in order. Renewals that are due run after each step. */
import { day } from '../../base/duration.ts';
import { parseIdentifier } from '../../base/identifier.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import { encodePem } from '../../crypto/pem.ts';
import { createApiKey, revokeApiKey } from '../../domain/access/api-keys.ts';
import type { Actor } from '../../domain/audit/audit.ts';
import { importCertificate } from '../../domain/certificates/certificate-import.ts';
import { changeCertificate } from '../../domain/certificates/certificate-update.ts';
import { createCertificate, deleteCertificate } from '../../domain/certificates/certificates.ts';
import { certName } from '../../domain/input-strings.ts';
import {
  createApiKeyInput,
  createCertificateInput,
  createIssuerInput,
  parseInput,
  updateCertificateInput,
} from '../../domain/inputs.ts';
import { storeIssuer } from '../../domain/issuers/issuer-changes.ts';
import { issueFromLocalCa } from '../../domain/private-ca/local-ca.ts';
import type { Vault } from '../../domain/vault.ts';

type Deed = (vault: Vault, actor: Actor) => Promise<unknown>;

export type DemoStep = {
  readonly daysAgo: number;
  readonly does?: Deed;
};

/** The certificates that the client of the demo installs. */
export const clientCertificates = ['web', 'api'] as const;

/** A CA that is not there: port 9 of this machine. Its renewals fail as they do when a CA is down. */
const absentCa = { name: 'company-ca', directory_url: 'http://127.0.0.1:9/acme/directory' };

export const demoSteps: readonly DemoStep[] = [
  {
    daysAgo: 120,
    does: create({ name: 'web', domains: ['www.example.test', 'example.test'] }),
  },
  { daysAgo: 110, does: create({ name: 'blog', domains: ['blog.example.test'] }) },
  { daysAgo: 100, does: imported('old-shop', 'shop-2020.example.test', 90) },
  { daysAgo: 80, does: imported('partner', 'partner.example.test', 90) },
  { daysAgo: 75, does: create({ name: 'intranet', domains: ['intranet.example.test'] }) },
  { daysAgo: 75, does: change('intranet', { auto_renew: false }) },
  { daysAgo: 70, does: create({ name: 'shop', domains: ['shop.example.test'] }) },
  {
    daysAgo: 65,
    does: key({ name: 'backup-robot', certificates: ['*'], lifetime: 60 }),
  },
  { daysAgo: 60 },
  { daysAgo: 55, does: create({ name: 'staging', domains: ['staging.example.test'] }) },
  { daysAgo: 50 },
  { daysAgo: 40, does: create({ name: 'api', domains: ['api.example.test'] }) },
  { daysAgo: 35, does: addAbsentCa },
  { daysAgo: 30, does: imported('mail', 'mail.example.test', 365) },
  {
    daysAgo: 21,
    does: create({ name: '*.apps', domains: ['*.apps.example.test'], key_type: 'rsa2048' }),
  },
  { daysAgo: 20, does: change('shop', { issuer: absentCa.name }) },
  { daysAgo: 14, does: create({ name: 'database', domains: ['db.example.test', '192.0.2.5'] }) },
  { daysAgo: 12, does: change('staging', { disabled: true }) },
  { daysAgo: 9, does: revokedKey('old-laptop') },
  { daysAgo: 5 },
  { daysAgo: 3, does: (vault, actor) => deleteCertificate(vault, actor, 'blog', { force: false }) },
  { daysAgo: 2, does: create({ name: 'vpn', domains: ['vpn.example.test'], lifetime: '6d' }) },
  {
    daysAgo: 1,
    does: create({ name: 'new-site', domains: ['new.example.test'], issuer: absentCa.name }),
  },
];

function create(input: object): Deed {
  return (vault, actor) => createCertificate(vault, actor, parseInput(createCertificateInput, input));
}

function change(name: string, changes: object): Deed {
  return (vault, actor) => changeCertificate(vault, actor, name, parseInput(updateCertificateInput, changes));
}

/** Another program's certificate: the private CA signs it, and it comes in as files. */
function imported(name: string, domain: string, days: number): Deed {
  return async (vault, actor) => {
    const privateKey = await generatePrivateKey('ec256');
    const identifier = parseIdentifier(domain);
    if (identifier === undefined) throw new Error(`${domain} is not a domain`);
    const lifetime = days * day;
    const { leaf, chain } = await issueFromLocalCa(vault, {
      identifiers: [identifier],
      privateKey,
      lifetime,
    });
    const pem = [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join('');
    const sources = [
      { name: 'fullchain.pem', bytes: Buffer.from(pem) },
      { name: 'privkey.pem', bytes: Buffer.from(encodePem('PRIVATE KEY', privateKey.expose())) },
    ];
    await importCertificate(vault, actor, { name: parseInput(certName, name), sources });
  };
}

function key({
  lifetime,
  ...input
}: {
  readonly name: string;
  readonly certificates: readonly string[];
  readonly lifetime?: number;
}): (vault: Vault, actor: Actor) => ReturnType<typeof createApiKey> {
  return (vault, actor) => {
    const expires_at =
      lifetime === undefined ? undefined : formatTimestamp(vault.world.now() + lifetime * day);
    const scopes = ['certificates:read', 'private_keys:read'];
    return createApiKey(vault, actor, parseInput(createApiKeyInput, { scopes, ...input, expires_at }));
  };
}

/** The key of the client that installs `clientCertificates`. */
export const createClientKey = key({ name: 'web-server-1', certificates: clientCertificates });

function revokedKey(name: string): Deed {
  return async (vault, actor) => {
    const { id } = await key({ name, certificates: ['*'] })(vault, actor);
    await revokeApiKey(vault, actor, id);
  };
}

/** Stores the CA as if its directory had been read: this is the one step that a vault refuses while a CA is down. */
function addAbsentCa(vault: Vault, actor: Actor): Promise<void> {
  const input = parseInput(createIssuerInput, absentCa);
  const directory = {
    ...{ newNonce: '', newAccount: '', newOrder: '', revokeCert: undefined, keyChange: undefined },
    ...{ renewalInfo: undefined, termsOfService: undefined, website: undefined, profiles: {} },
    externalAccountRequired: false,
  };
  const secrets = { ca: null, acceptsTerms: true };
  return vault.db.write((writer) => storeIssuer(vault, writer, actor, { input, secrets, directory }));
}
