/**
 * Commands on the hosts of the nodes, which work in the database themselves: what one of them has done counts at the
 * very next request to any node. Some are killed at any moment.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PrivateChain } from '../harness/ca/private-chain.ts';
import type { Chance } from './chamber.ts';
import { newLeaf } from './imported-leaf.ts';
import type { Deed, Said } from './ledger.ts';
import type { NodeAsker } from './node-asker.ts';
import { type NodeDownloads, noKey, polled } from './node-downloads.ts';
import type { Users } from './node-shifts.ts';
import { type Place, runCommand } from './running-vault.ts';

export const commandNames = [
  ...(['certificate import', 'api-key create', 'api-key revoke', 'api-key delete'] as const),
] as const;

type CommandName = (typeof commandNames)[number];

/** A command that has not ended by then hangs, in milliseconds: the longest outage is shorter. */
const patience = 120_000;

const importedByCommand = 'imported-c';

export type NodeCommandsOptions = {
  readonly asker: NodeAsker;
  readonly downloads: NodeDownloads;
  readonly chain: PrivateChain;
  readonly certificates: readonly string[];
  /** Those of the nodes. */
  readonly places: readonly Place[];
  readonly database: string;
  /** For files to import. */
  readonly folder: string;
  /** The share of commands that are killed. */
  readonly killed: number;
};

export class NodeCommands {
  readonly #options: NodeCommandsOptions;
  /** How often each has succeeded. */
  readonly succeeded = new Map<CommandName, number>();
  killed = 0;
  #names = 0;

  constructor(options: NodeCommandsOptions) {
    this.#options = options;
  }

  get users(): Users {
    return {
      'key commands': { count: 1, once: (chance) => this.#keys(chance) },
      'import commands': { count: 1, once: (chance) => this.#import(chance) },
    };
  }

  /** A key is created, revoked and deleted, each time on the host of any node. */
  async #keys(chance: Chance): Promise<void> {
    const { asker, downloads, certificates } = this.#options;
    const name = `command-key-${++this.#names}`;
    const certificate = chance.one(certificates);
    const scopes = ['certificates:read', 'private_keys:read'].flatMap((scope) => ['--scope', scope]);
    const options = ['--name', name, ...scopes, '--certificate', certificate];
    const deed = { kind: 'create key', name, certificate } as const;
    const made = await this.#command(chance, deed, 'api-key create', options, (raw) => ({ raw }));
    if (made === undefined) return;
    const { raw = '' } = made;
    let endsAt = Number.POSITIVE_INFINITY;
    const headers = { Authorization: `Bearer ${raw}` };
    const why = `${name} was created by a command`;
    asker.everywhere(`/api/v1/certificates/${certificate}`, headers, [200], why, () => endsAt);
    await delay(chance.whole(0, 500));
    endsAt = performance.now();
    const revoked = await this.#command(chance, { kind: 'revoke key', name }, 'api-key revoke', [name]);
    if (revoked === undefined) return;
    downloads.everywhere(certificate, noKey, `${name} was revoked by a command`, raw);
    const ofName = [name, '--yes'];
    const deleted = await this.#command(chance, { kind: 'delete key', name }, 'api-key delete', ofName);
    if (deleted === undefined) return;
    downloads.everywhere(certificate, noKey, `${name} was deleted by a command`, raw);
    await delay(chance.whole(0, 1000));
  }

  async #import(chance: Chance): Promise<void> {
    const { chain, folder, downloads } = this.#options;
    const { fullchain, key, fingerprint } = await newLeaf(chain);
    const certificate = importedByCommand;
    const before = downloads.seen(certificate);
    const file = join(folder, 'command-import.pem');
    writeFileSync(file, fullchain + key, { mode: 0o600 });
    const options = ['--name', certificate, '--fullchain', file];
    const deed = { kind: 'import', certificate, fingerprint } as const;
    const done = await this.#command(chance, deed, 'certificate import', options);
    rmSync(file);
    if (done !== undefined) {
      const why = 'a version was imported by a command';
      downloads.everywhere(certificate, [200], why, undefined, before);
      await downloads.get(certificate, polled);
    }
    await delay(chance.whole(500, 2000));
  }

  /** Runs it on the host of any node. Undefined if it failed or was killed: it may have happened or not. */
  async #command(
    chance: Chance,
    deed: Deed,
    name: CommandName,
    options: readonly string[],
    said: (stdout: string) => Said = () => ({}),
  ): Promise<Said | undefined> {
    const { asker, places, database, killed } = this.#options;
    const isKilled = chance.happens(killed);
    const killAfter = isKilled ? chance.whole(10, 1000) : patience;
    const { url, password } = withoutPassword(database);
    const own = chance.one(places);
    const place = { ...own, environment: { ...own.environment, PGPASSWORD: password } };
    const args = [...name.split(' '), ...options, '--database', url];
    return asker.work(deed, `vault ${args.join(' ')}`, async () => {
      const { code, stdout, stderr } = await runCommand(place, args, { killAfter });
      if (code === 0) {
        this.succeeded.set(name, (this.succeeded.get(name) ?? 0) + 1);
        return { said: said(stdout.trim()) };
      }
      if (code !== null) return { failure: stderr };
      if (!isKilled) return { failure: `no end within ${patience / 1000} s` };
      this.killed += 1;
      return { failure: undefined };
    });
  }
}

/** Arguments may hold none: every user of the machine can see them. */
function withoutPassword(database: string): { readonly url: string; readonly password: string } {
  const [, user = '', password = ''] = /^postgres:\/\/([^:@/]*):([^@/]*)@/.exec(database) ?? [];
  return {
    url: database.replace(`${user}:${password}@`, `${user}@`),
    password: decodeURIComponent(password),
  };
}
