/** An endpoint of the API with what a test says about it; otherwise it serves the current version. */
import type { Endpoint } from '../../../assets/console/data/shapes.ts';

export function endpoint(wanted: Partial<Endpoint> = {}): Endpoint {
  return {
    ...{ id: 1, address: 'www.example.com:443', certificate: 'web', server_name: 'www.example.com' },
    ...{ starttls: null, trust: 'auto', ca_subjects: [], interval: '1h', state: 'current', reason: null },
    ...{ version: 2, current_version: 2, outdated_since: null, fingerprint_sha256: 'ab', issuer: 'CN=CA' },
    ...{ names: ['www.example.com'], tls_version: 'TLSv1.3', chain_complete: true, verifies: true },
    ...{ not_before: '2026-11-01T00:00:00Z', not_after: '2027-01-30T00:00:00Z', ocsp_stapled: false },
    ...{ error: null, created_at: '2026-11-01T00:00:00Z', checked_at: '2026-11-29T03:17:04Z' },
    ...{ next_check_at: '2026-11-29T04:17:04Z', changed_at: '2026-11-01T00:00:10Z' },
    ...wanted,
  };
}
