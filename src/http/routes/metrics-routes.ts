/** `GET /metrics`, if enabled. It is for Prometheus and not part of the API or its description. */
import { Problem } from '../../base/problem.ts';
import { metricsContentType } from '../metrics/metric-text.ts';
import { metricsText } from '../metrics/metrics.ts';
import { noQuery } from '../openapi/schemas.ts';
import { type Route, route } from '../request/route.ts';

export const metricsRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/metrics',
    id: 'getMetrics',
    summary: 'Metrics for Prometheus',
    access: { kind: 'metrics' },
    query: noQuery,
    replies: {
      200: { description: 'metrics in the Prometheus text format 0.0.4', contentType: 'text/plain' },
    },
    problems: [],
    handle: async ({ context: { vault, version, metrics, waits } }) => {
      if (metrics === undefined) throw new Problem('not_found');
      return {
        status: 200,
        headers: { 'Content-Type': metricsContentType, 'Cache-Control': 'no-store' },
        stream: () => metricsText(vault, version, metrics, waits.size),
      };
    },
  }),
];
