/** The audit log for administrators: as pages, and as a file. */
import { z } from 'zod';
import { parseTimestamp } from '../../base/timestamp.ts';
import {
  type AuditEventView,
  type AuditSearch,
  exportAuditEvents,
  viewAuditEvents,
} from '../../domain/audit/audit-log.ts';
import { inPortions } from '../../domain/portions.ts';
import { auditEventSchema, auditExportQuery, auditQuery } from '../openapi/audit-schemas.ts';
import { type Route, route } from '../request/route.ts';
import { pageReply } from './list-reply.ts';

const access = { kind: 'administrator' } as const;

export const auditRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/audit-events',
    id: 'listAuditEvents',
    summary: 'List audit events, newest first',
    access,
    query: auditQuery,
    replies: { 200: { description: 'a page', schema: z.array(auditEventSchema), headers: ['Link'] } },
    problems: [],
    handle: ({ context: { vault }, ...call }) => {
      const { limit, after, ...filter } = call.query;
      const search = wanted(filter);
      return pageReply(
        inPortions<AuditEventView>(vault, limit + 1, (count, last) =>
          viewAuditEvents(vault, search, { before: last?.id ?? after, limit: count }),
        ),
        call,
        (event) => event,
        ({ id }) => id,
        filter,
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/audit-events/export',
    id: 'exportAuditEvents',
    summary: 'Export matching audit events, newest first, as CSV or JSON Lines',
    access,
    query: auditExportQuery,
    replies: {
      200: {
        description: 'the file',
        contentType: ['text/csv', 'application/jsonl'],
        headers: ['Content-Disposition'],
      },
    },
    problems: [],
    handle: async ({ context: { vault }, query }) => {
      const { format, ...filter } = query;
      return {
        status: 200,
        headers: {
          'Content-Type': format === 'csv' ? 'text/csv' : 'application/jsonl',
          'Content-Disposition': `attachment; filename="audit-events.${format}"`,
          'Cache-Control': 'no-store',
        },
        stream: () => exportAuditEvents(vault, wanted(filter), format, 'newest first'),
      };
    },
  }),
];

type Filter = Omit<z.output<typeof auditExportQuery>, 'format'>;

/** The filter with its times in milliseconds. */
function wanted({ since, until, ...texts }: Filter): AuditSearch {
  return { ...texts, since: parseTimestamp(since ?? ''), until: parseTimestamp(until ?? '') };
}
