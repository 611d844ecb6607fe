/** A deployment of the API with what a test says about it; otherwise it is current. */
import type { Deployment } from '../../../assets/console/data/shapes.ts';

export function deployment(wanted: Partial<Deployment> = {}): Deployment {
  return {
    ...{ id: 'web-1.web1', certificate: 'web', host: 'web1', job: 'web-1', destination: '/etc/nginx/tls' },
    ...{ state: 'current', version: 2, current_version: 2, reload: null, verify: null, error: null },
    ...{
      next_run_at: null,
      api_key: { id: 1, name: 'clients' },
      deploy_target: null,
      last_seen_at: '2026-11-29T03:17:04Z',
    },
    ...wanted,
  };
}
