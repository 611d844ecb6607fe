/** Checks that all nodes of a vault give the same answers, and those that their users have seen before. */
import type { Facts } from './ledger.ts';
import { ask } from './running-vault.ts';
import { withRows } from './server-truths.ts';
import type { TormentedNode } from './tormented-nodes.ts';
import { Truths } from './truths.ts';

/** The same for all, since answers have URLs in them. */
const host = 'vault.example';
const artifacts = ['fullchain.crt', 'private.key', 'certificate.crt'];

/** Only renewals that were queued before go on meanwhile, so the vault becomes quiet. */
const maxTries = 50;

export class NodeAgreement {
  readonly #database: string;
  readonly #nodes: readonly TormentedNode[];
  readonly #truths: ReadonlyMap<TormentedNode, Truths>;
  #compared = 0;

  /** `database` leads to the server that takes writes. */
  constructor(nodes: readonly TormentedNode[], database: string) {
    this.#database = database;
    this.#nodes = nodes;
    this.#truths = new Map(nodes.map((node) => [node, new Truths()]));
  }

  /** The number of comparisons. */
  get compared(): number {
    return [...this.#truths.values()].reduce((sum, { compared }) => sum + compared, this.#compared);
  }

  /** The broken promises. With `everything`, also those of states that were found before. */
  async broken(facts: Facts, { everything }: { readonly everything: boolean }): Promise<string[]> {
    const broken: string[] = [];
    for (const [{ name, origin }, truths] of this.#truths) {
      const found = await truths.ofServer(origin, facts, { everything });
      broken.push(...found.map((sentence) => `${name}: ${sentence}`));
    }
    const [first = new Map<string, string>(), ...others] = await this.#said(facts.keys.get('all')?.raw ?? '');
    for (const [index, other] of others.entries()) {
      for (const path of new Set([...first.keys(), ...other.keys()])) {
        this.#compared += 1;
        if (first.get(path) === other.get(path)) continue;
        const which = this.#nodes[index + 1]?.name;
        broken.push(`${path} differs: ${first.get(path)} at node-1, ${other.get(path)} at ${which}`);
      }
    }
    return broken;
  }

  /**
   * What each node says, all of it about one state of the vault: a renewal that was accepted before may still end, and
   * a node that is asked later then truly says something else.
   */
  async #said(raw: string): Promise<Map<string, string>[]> {
    for (let tries = 1; ; tries += 1) {
      const before = await generation(this.#database);
      const answers = await Promise.all(this.#nodes.map((node) => said(node, raw)));
      const after = await generation(this.#database);
      if (before === after) return answers;
      if (tries === maxTries) throw new Error(`the vault changed in each of ${tries} comparisons`);
    }
  }
}

/** The last change to certificates and keys that any process has committed. */
async function generation(url: string): Promise<unknown> {
  const sql = "select value from settings where key = 'generation'";
  const [row] = await withRows(url, (rows) => rows(sql));
  return row?.value;
}

/** Status, ETag and text by path: the list of certificates, their versions, and the artifacts of each. */
async function said({ origin }: TormentedNode, raw: string): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  const get = async (path: string) => {
    const headers = { Authorization: `Bearer ${raw}`, Host: host };
    const { status, headers: own, body } = await ask(`${origin}${path}`, { headers });
    answers.set(path, `${status} ${own.etag} ${body}`);
    return body;
  };
  const list = JSON.parse(await get('/api/v1/certificates')) as { name: string }[];
  for (const { name } of list) {
    for (const rest of ['', '/versions', ...artifacts.map((file) => `/${file}`)])
      await get(`/api/v1/certificates/${name}${rest}`);
  }
  return answers;
}
