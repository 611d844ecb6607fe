/** Replacements of this machine's vault, or of one at a server. */
import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { servingServers } from '../../../domain/instance/served-settings.ts';
import { replacementInput, replacementRequest } from '../../../domain/replacements/replacement-inputs.ts';
import { type PreviewView, previewReplacement } from '../../../domain/replacements/replacement-preview.ts';
import {
  pageOfReplaced,
  pageOfReplacements,
  type ReplacedCertificateView,
  type ReplacementView,
  replacedView,
  viewReplacement,
} from '../../../domain/replacements/replacement-views.ts';
import { cancelReplacement, createReplacement } from '../../../domain/replacements/replacements.ts';
import type { Vault } from '../../../domain/vault.ts';
import { type RemoteVault, slowRequest } from '../../remote/remote-vault.ts';

/** The body of a request, as the API takes it. */
export type ReplacementBody = {
  readonly issuer?: string | undefined;
  readonly labels?: readonly string[] | undefined;
  readonly certificate?: string | undefined;
  readonly reason?: string | undefined;
  readonly deadline?: string | undefined;
};

/** Where replacements are. All of these throw the problems of the API. */
export type ReplacementPlace = {
  readonly preview: (body: ReplacementBody) => Promise<PreviewView>;
  readonly create: (body: ReplacementBody) => Promise<ReplacementView>;
  readonly view: (id: number) => Promise<ReplacementView>;
  readonly certificates: (id: number) => Promise<ReplacedCertificateView[]>;
  /** Newest first. */
  readonly list: () => Promise<ReplacementView[]>;
  readonly cancel: (id: number) => Promise<ReplacementView>;
  /** Whether a server carries them out. */
  readonly isServed: () => Promise<boolean>;
};

const rowsAtOnce = 500;

/** The replacements of a vault on this machine. */
export function replacementsHere(vault: Vault): ReplacementPlace {
  const read = (body: ReplacementBody) => replacementRequest(parseInput(replacementInput, body));
  const view = (id: number) => viewReplacement(vault, id);
  return {
    preview: async (body) => previewReplacement(vault, read(body)),
    create: async (body) => view(await createReplacement(vault, localCli, read(body))),
    view,
    certificates: async (id) => {
      const rows = await all((last: { readonly id: number } | undefined) =>
        pageOfReplaced(vault, id, { after: last?.id, limit: rowsAtOnce }),
      );
      return rows.map(replacedView);
    },
    list: () =>
      all((last: { readonly id: number } | undefined) =>
        pageOfReplacements(vault, { before: last?.id, limit: rowsAtOnce }),
      ),
    cancel: async (id) => {
      await cancelReplacement(vault, localCli, id);
      return view(id);
    },
    isServed: async () => (await servingServers(vault.db.reader)).length > 0,
  };
}

async function all<Row, Last>(page: (last: Row | Last | undefined) => Promise<Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const next = await page(rows.at(-1));
    rows.push(...next);
    if (next.length < rowsAtOnce) return rows;
  }
}

/** Those of a vault at a server. */
export function replacementsThere(remote: RemoteVault): ReplacementPlace {
  const path = '/replacements';
  return {
    preview: (body) => remote.send('POST', `${path}/preview`, body, slowRequest),
    create: (body) => remote.send('POST', path, body, slowRequest),
    view: (id) => remote.get(`${path}/${id}`),
    certificates: (id) => remote.list(`${path}/${id}/certificates`),
    list: () => remote.list(path),
    cancel: (id) => remote.send('POST', `${path}/${id}/cancel`),
    isServed: async () => true,
  };
}
