/**
 * The CA of the scripted server, without HTTP: accounts, orders and certificates in memory, by RFC 8555, RFC 9773 and
 * the drafts that the vault supports.
 */
import 'reflect-metadata';
import { createPublicKey, randomBytes, X509Certificate } from 'node:crypto';
import { Pkcs10CertificateRequest, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { calculateJwkThumbprint, type JWK } from 'jose';
import { renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { issueLeaf } from '../../../src/crypto/x509/leaf-certificate.ts';
import { issueIntermediate, issueRoot, type X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import { dates, identifier, makeChain, type PrivateChain } from './private-chain.ts';
import { Refusal, type Verified, verifyBinding, verifyInner } from './scripted-acme-jws.ts';

type Identifier = { readonly type: string; readonly value: string };

export type ScriptedAccount = {
  readonly url: string;
  jwk: JWK;
  thumbprint: string;
  status: 'valid' | 'deactivated';
  contact: unknown;
  readonly externalAccount: string | undefined;
};

export type ScriptedChallenge = {
  readonly type: string;
  readonly url: string;
  readonly token: string | undefined;
  status: 'pending' | 'processing' | 'valid' | 'invalid';
  error: unknown;
};

export type ScriptedAuthorization = {
  readonly url: string;
  readonly account: string;
  readonly identifier: Identifier;
  readonly wildcard: boolean;
  status: 'pending' | 'valid' | 'invalid' | 'deactivated' | 'expired' | 'revoked';
  readonly challenges: ScriptedChallenge[];
};

export type ScriptedOrder = {
  readonly url: string;
  readonly account: string;
  readonly identifiers: readonly Identifier[];
  readonly authorizations: ScriptedAuthorization[];
  readonly profile: string | undefined;
  readonly replaces: string | undefined;
  /** `undefined` while it depends on the authorizations. */
  ended: 'processing' | 'valid' | 'invalid' | undefined;
  /** The number of further responses with status `processing`. */
  processing: number;
  error: unknown;
  leaf: Buffer | undefined;
};

/** The input of a validator. */
export type Validation = {
  readonly type: string;
  readonly token: string | undefined;
  readonly identifier: string;
  readonly wildcard: boolean;
  /** The expected value; for dns-01, its digest. */
  readonly keyAuthorization: string;
  readonly accountUrl: string;
};

/** Resolves to undefined if the challenge is valid, or to the problem. */
export type Validator = (validation: Validation) => Promise<Refusal | undefined> | Refusal | undefined;

export type ScriptedCaOptions = {
  /** Validates challenges; by default every challenge is valid at once. */
  readonly validate?: Validator;
  /** HMAC keys by kid; if set, new accounts need a binding. */
  readonly externalAccounts?: Readonly<Record<string, Buffer>>;
  /** The URL of the terms of service; if set, accounts must agree to them. */
  readonly termsOfService?: string;
  readonly profiles?: Readonly<Record<string, string>>;
  /** Whether there is renewal information (RFC 9773); by default yes. */
  readonly renewalInfo?: boolean;
  /** The challenges for each name; by default http-01, dns-01 and tls-alpn-01. Wildcards get only dns-*. */
  readonly challengeTypes?: readonly string[];
  /** Whether the account can reuse valid authorizations; by default yes. */
  readonly reuseAuthorizations?: boolean;
  /** The number of responses with status `processing` after finalize; by default 0. */
  readonly processing?: number;
  /** The lifetime of certificates in milliseconds; by default 90 days. */
  readonly lifetime?: number;
  /** The notBefore of certificates, in UTC milliseconds. */
  readonly now?: () => number;
  /** Common names of other roots, each with an alternate chain. */
  readonly alternateRoots?: readonly string[];
};

const day = 86_400_000;

export class ScriptedCa {
  readonly origin: string;
  readonly chain: PrivateChain;
  readonly options: ScriptedCaOptions;
  readonly accounts = new Map<string, ScriptedAccount>();
  readonly orders = new Map<string, ScriptedOrder>();
  readonly authorizations = new Map<string, ScriptedAuthorization>();
  /** Serial numbers in upper case hex, as in node:crypto, with the reason. */
  readonly revoked = new Map<string, unknown>();
  /** Renewal windows set by a test, by the certificate's id. By default the last third of the lifetime. */
  readonly renewalWindows = new Map<string, { readonly start: string; readonly end: string }>();
  readonly #alternates: readonly X509Issuer[];
  readonly #running = new Set<Promise<void>>();
  #count = 0;

  private constructor(
    origin: string,
    chain: PrivateChain,
    alternates: readonly X509Issuer[],
    options: ScriptedCaOptions,
  ) {
    this.origin = origin;
    this.chain = chain;
    this.#alternates = alternates;
    this.options = options;
  }

  static async start(origin: string, options: ScriptedCaOptions): Promise<ScriptedCa> {
    const chain = await makeChain();
    const alternates = await Promise.all(
      (options.alternateRoots ?? []).map(async (name) => crossSigned(chain.intermediate, name)),
    );
    return new ScriptedCa(origin, chain, alternates, options);
  }

  /** Resolves when no validation is in progress. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  directory(): unknown {
    const { termsOfService, profiles, externalAccounts, renewalInfo = true } = this.options;
    return {
      newNonce: `${this.origin}/new-nonce`,
      newAccount: `${this.origin}/new-account`,
      newOrder: `${this.origin}/new-order`,
      revokeCert: `${this.origin}/revoke-cert`,
      keyChange: `${this.origin}/key-change`,
      ...(renewalInfo && { renewalInfo: `${this.origin}/renewal-info` }),
      meta: {
        ...(termsOfService !== undefined && { termsOfService }),
        ...(externalAccounts !== undefined && { externalAccountRequired: true }),
        ...(profiles !== undefined && { profiles }),
      },
    };
  }

  async newAccount({ payload = {}, jwk, thumbprint, header }: Verified) {
    if (header.jwk === undefined) throw new Refusal('malformed', 'newAccount is signed with jwk');
    const known = [...this.accounts.values()].find((account) => account.thumbprint === thumbprint);
    if (known?.status === 'deactivated') throw new Refusal('unauthorized', 'the account is deactivated');
    if (known !== undefined) return { isNew: false, account: known };
    if (payload.onlyReturnExisting === true)
      throw new Refusal('accountDoesNotExist', 'no account has this key');
    if (this.options.termsOfService !== undefined && payload.termsOfServiceAgreed !== true) {
      throw new Refusal('userActionRequired', 'the terms must be agreed to', {
        instance: this.options.termsOfService,
      });
    }
    const binding = payload.externalAccountBinding;
    const { externalAccounts } = this.options;
    if (externalAccounts !== undefined && binding === undefined) {
      throw new Refusal('externalAccountRequired', 'a binding is needed');
    }
    const url = this.#url('account');
    const account: ScriptedAccount = {
      ...{ url, jwk, thumbprint, status: 'valid', contact: payload.contact },
      externalAccount:
        externalAccounts && (await verifyBinding(binding, header.url ?? '', jwk, externalAccounts)),
    };
    this.accounts.set(url, account);
    return { isNew: true, account };
  }

  updateAccount(url: string, { payload = {}, header }: Verified): unknown {
    const account = this.#accountOf(header.kid);
    if (account.url !== url) throw new Refusal('unauthorized', 'the account belongs to another key');
    if (payload.status === 'deactivated') account.status = 'deactivated';
    if ('contact' in payload) account.contact = payload.contact;
    return accountBody(account);
  }

  async changeKey({ payload, header }: Verified): Promise<unknown> {
    const account = this.#accountOf(header.kid);
    const inner = await verifyInner(payload, header.url ?? '');
    const holder = [...this.accounts.values()].find(({ thumbprint }) => thumbprint === inner.thumbprint);
    if (holder !== undefined)
      throw new Refusal('conflict', 'the key is taken', { status: 409 }, { Location: holder.url });
    const { account: url, oldKey } = inner.payload ?? {};
    if (url !== account.url || (await calculateJwkThumbprint(oldKey as JWK)) !== account.thumbprint) {
      throw new Refusal('malformed', 'the inner JWS names another account or key');
    }
    account.jwk = inner.jwk;
    account.thumbprint = inner.thumbprint;
    return accountBody(account);
  }

  newOrder({ payload = {}, header }: Verified): ScriptedOrder {
    const account = this.#accountOf(header.kid);
    const { identifiers, replaces, profile } = payload as {
      identifiers: Identifier[];
      replaces?: string;
      profile?: string;
    };
    const taken = [...this.orders.values()].some(
      (order) => order.replaces === replaces && order.ended !== 'invalid',
    );
    if (replaces !== undefined && taken) {
      throw new Refusal('alreadyReplaced', `another order replaces ${replaces}`);
    }
    if (profile !== undefined && !Object.hasOwn(this.options.profiles ?? {}, profile)) {
      throw new Refusal('invalidProfile', `no profile ${profile}`);
    }
    const order: ScriptedOrder = {
      url: this.#url('order'),
      account: account.url,
      identifiers,
      authorizations: identifiers.map((one) => this.#authorizationFor(account.url, one)),
      ...{ profile, replaces, ended: undefined, processing: 0, error: undefined, leaf: undefined },
    };
    this.orders.set(order.url, order);
    return order;
  }

  orderBody(order: ScriptedOrder): unknown {
    if (order.ended === 'processing' && order.processing-- <= 0) order.ended = 'valid';
    const { url, identifiers, authorizations, profile, replaces, error, ended } = order;
    const status = ended ?? statusFrom(authorizations);
    return {
      ...{ status, identifiers, profile, replaces, error },
      expires: new Date(this.#now() + 7 * day).toISOString(),
      authorizations: authorizations.map((one) => one.url),
      finalize: `${url}/finalize`,
      ...(status === 'valid' && { certificate: `${url}/certificate` }),
    };
  }

  authorizationBody({
    identifier: { type, value },
    status,
    wildcard,
    challenges,
  }: ScriptedAuthorization): unknown {
    return {
      ...{
        status,
        identifier: { type, value },
        challenges: challenges.map((one) => this.challengeBody(one)),
      },
      expires: new Date(this.#now() + 7 * day).toISOString(),
      ...(wildcard && { wildcard }),
    };
  }

  challengeBody({ type, url, token, status, error }: ScriptedChallenge): unknown {
    const persist = {
      accounturi: `${this.origin}/account/persist`,
      'issuer-domain-names': ['ca.example', 'Also.example'],
    };
    return { ...{ type, url, token, status, error }, ...(type === 'dns-persist-01' && persist) };
  }

  /** Starts the validation of a challenge in the background. */
  answer(url: string, { header }: Verified): ScriptedChallenge {
    const account = this.#accountOf(header.kid);
    for (const authorization of this.authorizations.values()) {
      const challenge = authorization.challenges.find((one) => one.url === url);
      if (challenge === undefined) continue;
      if (challenge.status !== 'pending' || authorization.status !== 'pending') return challenge;
      challenge.status = 'processing';
      const looking = this.#look(account, authorization, challenge).finally(() =>
        this.#running.delete(looking),
      );
      this.#running.add(looking);
      return challenge;
    }
    throw new Refusal('malformed', 'no such challenge', { status: 404 });
  }

  async finalize(order: ScriptedOrder, { payload }: Verified): Promise<void> {
    if ((order.ended ?? statusFrom(order.authorizations)) !== 'ready') {
      throw new Refusal('orderNotReady', 'the order is not ready');
    }
    const request = new Pkcs10CertificateRequest(Buffer.from(String(payload?.csr), 'base64url'));
    const names = namesIn(request);
    const wanted = order.identifiers.map(({ value }) => value);
    if (!(await request.verify()) || names.toSorted().join() !== wanted.toSorted().join()) {
      throw new Refusal('badCSR', `the request is for ${names.join()}, the order for ${wanted.join()}`);
    }
    const { lifetime = 90 * day } = this.options;
    order.leaf = await issueLeaf({
      identifiers: wanted.map(identifier),
      publicKey: Buffer.from(request.publicKey.rawData),
      serial: randomBytes(16),
      notBefore: this.#now(),
      notAfter: this.#now() + lifetime,
      issuer: this.chain.intermediate,
    });
    order.processing = this.options.processing ?? 0;
    order.ended = order.processing > 0 ? 'processing' : 'valid';
  }

  /** PEM; the first is the default chain, the others are alternates. */
  chains({ leaf }: ScriptedOrder): string[] {
    if (leaf === undefined) throw new Refusal('malformed', 'no certificate yet', { status: 404 });
    return [this.chain.intermediate, ...this.#alternates].map(({ certificate }) =>
      [leaf, certificate].map((der) => encodePem('CERTIFICATE', der)).join(''),
    );
  }

  revoke({ payload, header, thumbprint }: Verified): void {
    const leaf = new X509Certificate(Buffer.from(String(payload?.certificate), 'base64url'));
    const order = [...this.orders.values()].find((one) => one.leaf?.equals(leaf.raw));
    const isHolder = header.kid !== undefined && order?.account === this.#accountOf(header.kid).url;
    const ownKey = header.jwk && createPublicKey({ key: header.jwk as never, format: 'jwk' });
    if (order === undefined) throw new Refusal('malformed', 'not a certificate of this CA', { status: 404 });
    if (!isHolder && ownKey?.equals(leaf.publicKey) !== true)
      throw new Refusal('unauthorized', `${thumbprint} may not`);
    if (this.revoked.has(leaf.serialNumber)) throw new Refusal('alreadyRevoked', 'it is revoked already');
    this.revoked.set(leaf.serialNumber, payload?.reason);
  }

  renewalInfo(id: string): unknown {
    const order = [...this.orders.values()].find(
      ({ leaf }) => leaf !== undefined && renewalInfoId(leaf) === id,
    );
    if (order?.leaf === undefined) throw new Refusal('malformed', `no certificate ${id}`, { status: 404 });
    const { validFromDate, validToDate } = new X509Certificate(order.leaf);
    const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
    const usual = {
      start: new Date(from + ((to - from) * 2) / 3).toISOString(),
      end: new Date(from + ((to - from) * 5) / 6).toISOString(),
    };
    return { suggestedWindow: this.renewalWindows.get(id) ?? usual };
  }

  keyOf(kid: string): JWK | undefined {
    return this.accounts.get(kid)?.jwk;
  }

  #accountOf(kid: string | undefined): ScriptedAccount {
    const account = this.accounts.get(kid ?? '');
    if (account === undefined) throw new Refusal('accountDoesNotExist', `no account ${kid}`);
    if (account.status !== 'valid') throw new Refusal('unauthorized', 'the account is deactivated');
    return account;
  }

  #authorizationFor(account: string, { type, value }: Identifier): ScriptedAuthorization {
    const wildcard = value.startsWith('*.');
    const name = wildcard ? value.slice(2) : value;
    const known = [...this.authorizations.values()].find(
      (one) =>
        one.account === account &&
        one.identifier.value === name &&
        one.wildcard === wildcard &&
        (one.status === 'pending' || (one.status === 'valid' && this.options.reuseAuthorizations !== false)),
    );
    if (known !== undefined) return known;
    const { challengeTypes = ['http-01', 'dns-01', 'tls-alpn-01'] } = this.options;
    const types = challengeTypes.filter((one) => !wildcard || one.startsWith('dns-'));
    const url = this.#url('authorization');
    const challenges = types.map(
      (one): ScriptedChallenge => ({
        type: one,
        url: this.#url('challenge'),
        token: one === 'dns-persist-01' ? undefined : randomBytes(16).toString('base64url'),
        status: 'pending',
        error: undefined,
      }),
    );
    const made: ScriptedAuthorization = {
      ...{ url, account, identifier: { type, value: name }, wildcard, status: 'pending', challenges },
    };
    this.authorizations.set(url, made);
    return made;
  }

  async #look(
    account: ScriptedAccount,
    authorization: ScriptedAuthorization,
    challenge: ScriptedChallenge,
  ): Promise<void> {
    const { type, token } = challenge;
    const failure = await this.options.validate?.({
      ...{ type, token, accountUrl: account.url },
      identifier: authorization.identifier.value,
      wildcard: authorization.wildcard,
      keyAuthorization: `${token}.${account.thumbprint}`,
    });
    challenge.status = failure === undefined ? 'valid' : 'invalid';
    if (failure !== undefined) challenge.error = problemBody(failure);
    if (authorization.status === 'pending') authorization.status = challenge.status;
  }

  #now(): number {
    return this.options.now?.() ?? Date.now();
  }

  #url(kind: string): string {
    this.#count += 1;
    return `${this.origin}/${kind}/${this.#count}`;
  }
}

/** The account object (§7.1.2). */
export function accountBody({ status, contact, url }: ScriptedAccount): unknown {
  return { status, contact, orders: `${url}/orders` };
}

/** The problem document of a refusal. */
export function problemBody({ type, message, members }: Refusal): unknown {
  return { type: `urn:ietf:params:acme:error:${type}`, detail: message, ...members };
}

function statusFrom(authorizations: readonly ScriptedAuthorization[]): 'pending' | 'ready' | 'invalid' {
  if (authorizations.every(({ status }) => status === 'valid')) return 'ready';
  return authorizations.every(({ status }) => ['valid', 'pending'].includes(status)) ? 'pending' : 'invalid';
}

function namesIn(request: Pkcs10CertificateRequest): string[] {
  const extension = request.extensions.find((one) => one instanceof SubjectAlternativeNameExtension);
  return extension?.names.items.map(({ value }) => value) ?? [];
}

/** The intermediate's key, cross-signed by another root. */
async function crossSigned({ privateKey }: X509Issuer, rootName: string): Promise<X509Issuer> {
  const rootKey = await generatePrivateKey('ec256');
  const terms = { ...dates, commonName: rootName, privateKey: rootKey, serial: randomBytes(16) };
  const root = { privateKey: rootKey, certificate: await issueRoot(terms) };
  const certificate = await issueIntermediate({
    ...dates,
    commonName: 'Test Intermediate',
    publicKey: publicKeyOf(privateKey),
    serial: randomBytes(16),
    issuer: root,
  });
  return { certificate, privateKey };
}
