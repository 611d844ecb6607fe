/**
 * Concurrent users of a vault: clients that download, people who sign in and import, and commands that create, revoke
 * and delete. Each records request and response in the ledger, and immediately checks the result.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import * as http from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeChain, type PrivateChain } from '../harness/ca/private-chain.ts';
import type { Chance } from './chamber.ts';
import { newLeaf } from './imported-leaf.ts';
import { type Deed, type Entry, Facts, type Ledger, type Outcome, type Said } from './ledger.ts';
import { ask, type Place, type Question, runCommand } from './running-vault.ts';

export const administrator = { name: 'torturer', password: 'correct horse battery staple' };

/** How long a kill waits for each kind of response, in milliseconds. */
const patience = 90_000;

export type CrowdOptions = {
  readonly place: Place;
  /** For files that are imported. */
  readonly folder: string;
  readonly ledger: Ledger;
  readonly chance: Chance;
  /** The number of concurrent downloads. */
  readonly clients: number;
  /** The share of commands that are killed at some moment. */
  readonly killedCommands: number;
};

/** A permanent key for all certificates. */
type MasterOfAll = { readonly raw: string };

/** Created once before the crowd starts. */
export type Ground = {
  readonly chain: PrivateChain;
  readonly all: MasterOfAll;
  readonly certificates: string[];
};

const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'].flatMap((s) => ['--scope', s]);

/** Creates the vault, its administrator, certificates to download and a key `all` for all of them. */
export async function layGround(place: Place, ledger: Ledger): Promise<Ground> {
  const done = async (args: string[], input = '') => {
    const { code, stdout, stderr } = await runCommand(place, args, { input });
    if (code !== 0) throw new Error(`vault ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const certificates = ['web', 'mail', 'db'];
  for (const name of certificates) {
    const deed = ledger.begin({ kind: 'create certificate', certificate: name });
    await done(['certificate', 'create', '--name', name, '--domain', `${name}.test`]);
    ledger.end(deed, { is: 'done', said: {} });
  }
  await done(['admin', 'create', '--name', administrator.name, '--password-stdin'], administrator.password);
  const deed = ledger.begin({ kind: 'create key', name: 'all', certificate: 'web' });
  const raw = await done(['api-key', 'create', '--name', 'all', ...scopes, '--certificate', '*']);
  ledger.end(deed, { is: 'done', said: { raw } });
  const kept = ledger.begin({ kind: 'checkpoint' });
  ledger.end(kept, { is: 'done', said: { checkpoint: await done(['audit', 'checkpoint']) } });
  return { chain: await makeChain(), all: { raw }, certificates };
}

export class Crowd {
  readonly #options: CrowdOptions;
  readonly #ground: Ground;
  readonly facts = new Facts();
  /** The broken promises so far. */
  readonly broken: string[] = [];
  /** Rejections with their counts. */
  readonly refusals = new Map<string, number>();
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  #applied = 0;
  #url: string | undefined;
  #gate: PromiseWithResolvers<void> | undefined;
  #isOver = false;
  #busy = 0;
  #names = 0;
  #wanted: readonly Deed['kind'][] = [];
  #sessions: readonly { readonly name: string; readonly cookie: string }[] = [];
  /** Other keys that clients use, by name. */
  readonly #lent = new Map<string, { raw: string; certificate: string }>();

  constructor(options: CrowdOptions, ground: Ground) {
    this.#options = options;
    this.#ground = ground;
  }

  /** Runs all users until `leave` is called. */
  run(): Promise<unknown> {
    const { clients, chance } = this.#options;
    const each = (name: string, count: number, once: (chance: Chance) => Promise<void>) =>
      Array.from({ length: count }, (_, index) => this.#again(once, chance.child(`${name} ${index}`)));
    return Promise.all([
      ...each('client', clients, (own) => this.#download(own)),
      ...each('pair', 1, (own) => this.#downloadPair(own)),
      ...each('keys', 1, (own) => this.#changeKeys(own)),
      ...each('things', 1, (own) => this.#changeCertificates(own)),
      ...each('renewals', 1, (own) => this.#renew(own)),
      ...each('people', 1, (own) => this.#signIn(own)),
      ...each('imports', 1, (own) => this.#importOverHttp(own)),
      ...each('auditor', 1, (own) => this.#keepCheckpoint(own)),
    ]);
  }

  /** The URL of the server; undefined while it is down. */
  serveAt(url: string | undefined): void {
    this.#url = url;
  }

  /** Stops all users. Resolves when their current operations are done. */
  async pause(): Promise<void> {
    this.#gate ??= Promise.withResolvers();
    while (this.#busy > 0) await delay(5);
  }

  resume(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  leave(): void {
    this.#isOver = true;
    this.resume();
  }

  /**
   * Waits until each of these kinds got another response; users prefer these kinds. Returns early if a promise was
   * broken.
   */
  async answersOf(kinds: readonly Deed['kind'][]): Promise<void> {
    const count = (kind: Deed['kind']) => this.known().answers.get(kind) ?? 0;
    const before = new Map(kinds.map((kind) => [kind, count(kind)]));
    const deadline = performance.now() + patience;
    for (;;) {
      this.#wanted = kinds.filter((kind) => count(kind) === before.get(kind));
      if (this.#wanted.length === 0 || this.broken.length > 0) return;
      if (performance.now() > deadline)
        throw new Error(`no response within ${patience / 1000} s: ${this.#wanted.join(', ')}`);
      await delay(5);
    }
  }

  /** The facts from all responses so far. */
  known(): Facts {
    const { entries } = this.#options.ledger;
    for (; this.#applied < entries.length; this.#applied++) {
      this.facts.apply(entries[this.#applied] as Entry);
    }
    return this.facts;
  }

  #wants(...kinds: Deed['kind'][]): boolean {
    return kinds.some((kind) => this.#wanted.includes(kind));
  }

  async #again(once: (chance: Chance) => Promise<void>, chance: Chance): Promise<void> {
    while (!this.#isOver) {
      await this.#gate?.promise;
      if (this.#isOver) return;
      this.#busy += 1;
      try {
        await once(chance);
      } catch (error) {
        if (!isCutOff(error)) this.broken.push(String((error as Error).stack));
      } finally {
        this.#busy -= 1;
      }
      // Without a server, users that need one would retry in a busy loop.
      if (this.#url === undefined) await delay(5);
    }
  }

  /** Records a deed and its result. Rejects like `work`. */
  async #deed<T extends Outcome>(begun: Deed, work: () => Promise<T>): Promise<T> {
    const { ledger } = this.#options;
    const deed = ledger.begin(begun);
    try {
      const outcome = await work();
      ledger.end(deed, outcome);
      return outcome;
    } catch (error) {
      ledger.end(deed, { is: 'unknown' });
      throw error;
    }
  }

  #ask(path: string, question: Question = {}) {
    if (this.#url === undefined) throw new CutOff();
    return ask(this.#url + path, { agent: this.#agent, ...question });
  }

  #expect(what: boolean, sentence: string): void {
    if (!what) this.broken.push(sentence);
  }

  #refused(by: string): { is: 'refused' } {
    this.refusals.set(by, (this.refusals.get(by) ?? 0) + 1);
    return { is: 'refused' };
  }

  /** Runs a command: rejected if it says so, unknown if it was killed. */
  async #command(
    chance: Chance,
    deed: Deed,
    args: readonly string[],
    said: (stdout: string) => Said = () => ({}),
  ): Promise<Outcome> {
    const { place, killedCommands } = this.#options;
    const killAfter = chance.happens(killedCommands) ? chance.whole(10, 300) : undefined;
    return this.#deed(deed, async () => {
      const { code, stdout, stderr } = await runCommand(place, args, { killAfter });
      if (code === 0) return { is: 'done', said: said(stdout.trim()) };
      if (code === null) return { is: 'unknown' };
      this.#expect(!/\n\s+at /.test(stderr), `vault ${args.join(' ')}: ${stderr}`);
      return this.#refused(`${args.slice(0, 2).join(' ')}: ${stderr.split('\n')[0]}`);
    });
  }

  async #artifact(
    raw: string,
    certificate: string,
    artifact: string,
    version?: number,
  ): Promise<{ status: number; version: number; body: string }> {
    const query = version === undefined ? '' : `?version=${version}`;
    const path = `/api/v1/certificates/${certificate}/${artifact}${query}`;
    const { ledger } = this.#options;
    const deed = ledger.begin({ kind: 'download', certificate, artifact });
    let isAnswered = false;
    const answered = ({ status, headers }: { status: number; headers: http.IncomingHttpHeaders }) => {
      isAnswered = true;
      const said = {
        requestId: String(headers['x-request-id']),
        version: Number(headers['certificate-version']),
      };
      ledger.end(deed, status === 200 ? { is: 'done', said } : { is: 'unknown' });
    };
    try {
      const question = { headers: { Authorization: `Bearer ${raw}` }, answered };
      const { status, headers, body } = await this.#ask(path, question);
      return { status, version: Number(headers['certificate-version']), body };
    } finally {
      if (!isAnswered) ledger.end(deed, { is: 'unknown' });
    }
  }

  async #download(chance: Chance): Promise<void> {
    const certificate = chance.one(this.#ground.certificates);
    const artifact = chance.one(['fullchain.crt', 'private.key', 'fullchain.pem', 'certificate.crt']);
    const own = [...this.#lent.values()].filter((key) => key.certificate === certificate);
    const { raw } = chance.one([this.#ground.all, ...own]);
    const { status, body } = await this.#artifact(raw, certificate, artifact);
    // A key may be revoked before the request.
    if (status === 401 && raw !== this.#ground.all.raw) return;
    this.#expect(status === 200, `${artifact} of ${certificate}: ${status} ${body}`);
  }

  /** Downloads a chain and then the key of the same version, which must match despite renewals in between. */
  async #downloadPair(chance: Chance): Promise<void> {
    const certificate = chance.one(this.#ground.certificates);
    const { raw } = this.#ground.all;
    const chain = await this.#artifact(raw, certificate, 'fullchain.crt');
    const key = await this.#artifact(raw, certificate, 'private.key', chain.version);
    if (chain.status !== 200 || key.status !== 200) {
      this.#expect(false, `${certificate} ${chain.version}: ${chain.status}, ${key.status}`);
      return;
    }
    const fits = new X509Certificate(chain.body).checkPrivateKey(createPrivateKey(key.body));
    this.#expect(fits, `the chain and the key of ${certificate} ${chain.version} do not match`);
    await delay(chance.whole(5, 50));
  }

  /** The life of an API key: created, used, revoked, deleted. Each step must take effect at the next request. */
  async #changeKeys(chance: Chance): Promise<void> {
    const name = this.#name('key');
    const certificate = chance.happens(0.5) ? '*' : chance.one(this.#ground.certificates);
    const args = ['api-key', 'create', '--name', name, ...scopes, '--certificate', certificate];
    const target = certificate === '*' ? 'web' : certificate;
    const made = await this.#command(
      chance,
      { kind: 'create key', name, certificate: target },
      args,
      (raw) => ({
        raw,
      }),
    );
    if (made.is !== 'done') return;
    const raw = made.said.raw ?? '';
    await this.#expectKey(raw, target, [200], `${name} was made`);
    this.#lent.set(name, { raw, certificate: target });
    const [oldest = ''] = this.#lent.keys();
    if (this.#lent.size > 20) this.#lent.delete(oldest);
    if (chance.happens(0.4) && !this.#wants('revoke key', 'delete key')) return;
    this.#lent.delete(name);
    const id = await this.#idOf(name);
    const revoke = ['api-key', 'revoke', '--id', String(id)];
    const revoked = await this.#command(chance, { kind: 'revoke key', name }, revoke);
    if (revoked.is !== 'done') return;
    await this.#expectKey(raw, target, [401, 429], `${name} was revoked`);
    if (chance.happens(0.5) && !this.#wants('delete key')) return;
    const remove = ['api-key', 'delete', '--id', String(id)];
    const removed = await this.#command(chance, { kind: 'delete key', name }, remove);
    if (removed.is === 'done') await this.#expectKey(raw, target, [401, 429], `${name} was deleted`);
  }

  async #expectKey(raw: string, certificate: string, statuses: number[], why: string): Promise<void> {
    const headers = { Authorization: `Bearer ${raw}` };
    // Commands continue without a server; their results are checked at the next one.
    const answer = await this.#ask(`/api/v1/certificates/${certificate}`, { headers }).catch((error) => {
      if (!isCutOff(error)) throw error;
    });
    if (answer === undefined) return;
    const { status } = answer;
    this.#expect(statuses.includes(status), `${why}, and the next request with it got ${status}`);
  }

  /** Returns the id, which commands need and `api-key create` does not print. */
  async #idOf(name: string): Promise<number> {
    const { code, stdout, stderr } = await runCommand(this.#options.place, ['api-key', 'list']);
    if (code !== 0) throw new Error(`vault api-key list: ${stderr}`);
    const found = (JSON.parse(stdout) as { id: number; name: string }[]).find((key) => key.name === name);
    if (found === undefined) throw new Error(`${name} was created but is not in the list`);
    return found.id;
  }

  /** Imports, creates and deletes certificates by commands. */
  async #changeCertificates(chance: Chance): Promise<void> {
    const isForced = this.#wants('create certificate', 'delete certificate') && !this.#wants('import');
    if (chance.happens(0.5) && !isForced) {
      const { fullchain, key, fingerprint } = await newLeaf(this.#ground.chain);
      const files = [join(this.#options.folder, 'import.crt'), join(this.#options.folder, 'import.key')];
      writeFileSync(files[0] ?? '', fullchain);
      writeFileSync(files[1] ?? '', key);
      const certificate = chance.one(['imported-a', 'imported-b']);
      const args = ['--name', certificate, '--fullchain', files[0] ?? '', '--private-key', files[1] ?? ''];
      const deed: Deed = { kind: 'import', certificate, fingerprint };
      await this.#command(chance, deed, ['certificate', 'import', ...args]);
      return;
    }
    const certificate = this.#name('brief');
    const args = ['certificate', 'create', '--name', certificate, '--domain', `${certificate}.test`];
    const made = await this.#command(chance, { kind: 'create certificate', certificate }, args);
    if (made.is !== 'done') return;
    const { status } = await this.#artifact(this.#ground.all.raw, certificate, 'private.key');
    this.#expect(status === 200, `${certificate} was created, but its key cannot be downloaded: ${status}`);
    if (chance.happens(0.3) && !this.#wants('delete certificate')) return;
    const remove = ['certificate', 'delete', '--name', certificate];
    const removed = await this.#command(chance, { kind: 'delete certificate', certificate }, remove);
    if (removed.is !== 'done') return;
    const gone = await this.#artifact(this.#ground.all.raw, certificate, 'private.key');
    this.#expect(gone.status === 404, `${certificate} was deleted, but its key returned ${gone.status}`);
  }

  async #renew(chance: Chance): Promise<void> {
    const certificate = chance.one(this.#ground.certificates);
    if (chance.happens(0.2)) {
      // After the death of a worker, it would wait a minute for the lease to expire.
      const args = ['certificate', 'renew', '--name', certificate, '--wait'];
      const { code, stderr } = await runCommand(this.#options.place, args, { killAfter: 1500 });
      this.#expect(code !== 1 || !/\n\s+at /.test(stderr), `vault ${args.join(' ')}: ${stderr}`);
      return;
    }
    await this.#deed({ kind: 'renew', certificate }, async () => {
      const headers = { Authorization: `Bearer ${this.#ground.all.raw}` };
      const answer = await this.#ask(`/api/v1/certificates/${certificate}/renew`, {
        method: 'POST',
        headers,
      });
      if (answer.status !== 202) throw new Error(`renew ${certificate}: ${answer.status} ${answer.body}`);
      return { is: 'done', said: { renewal: (JSON.parse(answer.body) as { id: number }).id } };
    });
    await delay(chance.whole(20, 200));
  }

  async #signIn(chance: Chance): Promise<void> {
    const session = this.#name('session');
    const opened = await this.#deed({ kind: 'sign in', session }, async () => {
      const { status, headers, body } = await this.#ask('/api/v1/session', {
        method: 'POST',
        headers: { Origin: this.#url ?? '' },
        body: administrator,
      });
      if (status !== 201) throw new Error(`sign in: ${status} ${body}`);
      const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
      return { is: 'done', said: { cookie } } satisfies Outcome;
    });
    const headers = (cookie: string) => ({ Cookie: cookie, Origin: this.#url ?? '' });
    const { cookie } = opened.said;
    const earlier = this.#sessions;
    this.#sessions = [...earlier, { name: session, cookie }];
    const { status } = await this.#ask('/api/v1/session', { headers: headers(cookie) });
    this.#expect(status === 200, `${session} was opened, and the next request got ${status}`);
    // Keep one session open, because the vault ends the oldest of too many. After a kill several may be open.
    for (const last of earlier) {
      this.#sessions = this.#sessions.filter((other) => other !== last);
      const old = headers(last.cookie);
      await this.#deed({ kind: 'sign out', session: last.name }, async () => {
        const answer = await this.#ask('/api/v1/session', { method: 'DELETE', headers: old });
        if (answer.status !== 204) throw new Error(`sign out: ${answer.status} ${answer.body}`);
        return { is: 'done', said: {} };
      });
      const gone = await this.#ask('/api/v1/session', { headers: old });
      this.#expect(gone.status === 401, `${last.name} is over, and the next request got ${gone.status}`);
    }
    await delay(chance.whole(200, 800));
  }

  async #importOverHttp(chance: Chance): Promise<void> {
    if (this.#sessions.length === 0) {
      await delay(20);
      return;
    }
    const { fullchain, key, fingerprint } = await newLeaf(this.#ground.chain);
    const certificate = chance.one(['imported-b', 'imported-c']);
    const files = [
      { name: 'a.crt', text: fullchain },
      { name: 'a.key', text: key },
    ];
    const body = { name: certificate, files };
    await this.#deed({ kind: 'import', certificate, fingerprint }, async () => {
      const session = this.#sessions.at(-1);
      const headers = { Cookie: session?.cookie ?? '', Origin: this.#url ?? '' };
      const answer = await this.#ask('/api/v1/imports', { method: 'POST', headers, body });
      // Signed out during the request.
      if (answer.status === 403 && session !== this.#sessions.at(-1))
        return this.#refused('import: the session is over');
      if (answer.status !== 201) throw new Error(`import: ${answer.status} ${answer.body}`);
      return { is: 'done', said: { version: (JSON.parse(answer.body) as { version: number }).version } };
    });
    await delay(chance.whole(20, 200));
  }

  /** Prints a checkpoint of the audit log, which the log must never fall behind. */
  async #keepCheckpoint(chance: Chance): Promise<void> {
    const said = (checkpoint: string) => ({ checkpoint });
    await this.#command(chance, { kind: 'checkpoint' }, ['audit', 'checkpoint'], said);
    await delay(chance.whole(300, 1200));
  }

  #name(what: string): string {
    return `${what}-${++this.#names}`;
  }
}

class CutOff extends Error {}

/** The server was killed during the request, or is down, so it promised nothing. */
function isCutOff(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return error instanceof CutOff || /^(ECONNRESET|ECONNREFUSED|EPIPE)$/.test(String(code));
}
