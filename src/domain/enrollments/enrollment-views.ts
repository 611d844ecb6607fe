/** Enrollments as lists show them. */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import {
  type EnrollmentPage,
  type EnrollmentRow,
  findEnrollment,
  type ListedEnrollmentRow,
  pageEnrollments,
} from '../../db/tables/access/enrollments.ts';
import { didYouMean } from '../closest-names.ts';
import type { TimedContext } from '../contexts.ts';
import { inPortions, unlimited } from '../portions.ts';

export const enrollmentStates = ['active', 'used_up', 'expired', 'revoked'] as const;

export type EnrollmentState = (typeof enrollmentStates)[number];

/** An enrollment as lists show it; never the token or its hash. */
export type EnrollmentView = {
  id: number;
  name: string;
  /** The public part of the token. */
  prefix: string;
  /** What the keys may do. */
  scopes: Scope[];
  certificates: string[];
  certificate_labels: string[];
  /** The networks that the token and the keys work from; empty for any. */
  allowed_networks: string[];
  /** Whether each key works only from the address that the token was exchanged at. */
  bind_address: boolean;
  /** Its own labels, and those of the keys. */
  labels: string[];
  max_uses: number;
  uses: number;
  created_by: string;
  created_at: string;
  expires_at: string;
  /** When the keys expire. */
  key_expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  state: EnrollmentState;
};

/** The state at `now`; a revoked token stays revoked, and a used one used up, after its expiry. */
export function enrollmentState(
  row: Pick<EnrollmentRow, 'expires_at' | 'revoked_at' | 'uses' | 'max_uses'>,
  now: number,
): EnrollmentState {
  if (row.revoked_at !== null) return 'revoked';
  if (row.uses >= row.max_uses) return 'used_up';
  return row.expires_at <= now ? 'expired' : 'active';
}

export async function pageOfEnrollments(
  { db, world }: TimedContext,
  page: EnrollmentPage,
): Promise<EnrollmentView[]> {
  const rows = await pageEnrollments(db.reader, page);
  return rows.map((row) => viewOf(row, world.now()));
}

/** All enrollments by id, or those with all of the labels, page by page. */
export function allEnrollments(
  vault: TimedContext,
  labels?: readonly string[],
): AsyncGenerator<readonly EnrollmentView[]> {
  return inPortions<EnrollmentView>(vault, unlimited, (limit, last) =>
    pageOfEnrollments(vault, { after: last?.id, limit, labels }),
  );
}

/** One enrollment as lists show it. Throws `enrollment_not_found`. */
export async function viewEnrollment({ db, world }: TimedContext, id: number): Promise<EnrollmentView> {
  return viewOf(await requireEnrollment(db.reader, id), world.now());
}

function viewOf(row: ListedEnrollmentRow, now: number): EnrollmentView {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: parseJson(row.scopes),
    certificates: row.any_certificate === 1 ? ['*'] : parseJson(row.certificates).map(([, name]) => name),
    certificate_labels: parseJsonOr(row.certificate_labels, []),
    allowed_networks: parseJson(row.allowed_networks),
    bind_address: row.bind_address === 1,
    labels: parseJsonOr(row.labels, []),
    max_uses: row.max_uses,
    uses: row.uses,
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
    key_expires_at: formatTimestampOrNull(row.key_expires_at),
    revoked_at: formatTimestampOrNull(row.revoked_at),
    last_used_at: formatTimestampOrNull(row.last_used_at),
    state: enrollmentState(row, now),
  };
}

/** The enrollment of this id. Throws `enrollment_not_found`. */
export async function requireEnrollment(reader: Reader, id: number): Promise<EnrollmentRow> {
  const row = await findEnrollment(reader, id);
  if (row !== undefined) return row;
  throw new Problem('enrollment_not_found', {
    detail: `Unknown enrollment ${id}.`,
    hint: 'Try: vault enrollment list',
  });
}

/**
 * The id of the enrollment in a list that `text` means: an id, or a name. If several have the name, an `active` one
 * before one that is used up or expired, and that before a revoked one; or an `ended` one, in any of these states,
 * before an active one. Throws `enrollment_not_found`, or `invalid_request` with the candidates if several are alike.
 */
export async function enrollmentIdFrom(
  pages: AsyncIterable<readonly EnrollmentView[]>,
  text: string,
  which: 'active' | 'ended',
): Promise<number> {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  const names = new Set<string>();
  const same: EnrollmentView[] = [];
  for await (const page of pages) {
    for (const enrollment of page) {
      names.add(enrollment.name);
      if (enrollment.name === text) same.push(enrollment);
    }
  }
  const preferred: readonly ((state: EnrollmentState) => boolean)[] =
    which === 'active'
      ? [(state) => state === 'active', (state) => state !== 'revoked']
      : [(state) => state !== 'active'];
  const wanted = preferred.map((fits) => same.filter(({ state }) => fits(state)));
  const candidates = wanted.find(({ length }) => length > 0) ?? same;
  const [only] = candidates;
  if (only === undefined) {
    throw new Problem('enrollment_not_found', {
      detail: `Unknown enrollment ${JSON.stringify(text)}.`,
      hint: didYouMean(text, [...names], 'Try: vault enrollment list'),
    });
  }
  if (candidates.length === 1) return only.id;
  throw new Problem('invalid_request', {
    detail: `${candidates.length} enrollments have the name ${JSON.stringify(text)}.`,
    hint: `Use --id with one of: ${candidates.map(({ id, prefix }) => `${id} (${prefix}…)`).join(', ')}`,
  });
}
