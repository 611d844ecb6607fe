/** Problems: every code has a status and a sentence, and a body shows what is meant for the caller and no more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem, type ProblemCode, problemCodes, statusOf } from '../../src/base/problem.ts';

/** As the design has them ("HTTP"). */
const statuses: Record<ProblemCode, number> = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  certificate_not_found: 404,
  version_not_found: 404,
  private_key_not_held: 404,
  acme_account_not_found: 404,
  api_key_not_found: 404,
  acme_client_not_found: 404,
  administrator_not_found: 404,
  session_not_found: 404,
  deployment_not_found: 404,
  method_not_allowed: 405,
  certificate_exists: 409,
  domains_lost: 409,
  certificate_in_use: 409,
  not_renewable: 409,
  no_current_version: 409,
  profile_exists: 409,
  profile_in_use: 409,
  deployment_exists: 409,
  nothing_to_replace: 409,
  replacement_finished: 409,
  replacement_not_found: 404,
  endpoint_exists: 409,
  endpoint_not_found: 404,
  too_many_endpoints: 409,
  deploy_target_exists: 409,
  deploy_target_not_found: 404,
  too_many_deploy_targets: 409,
  deploy_failed: 502,
  scan_not_found: 404,
  finding_not_found: 404,
  too_many_scans: 409,
  too_many_deployments: 409,
  acme_account_current: 409,
  api_key_active: 409,
  api_key_exists: 409,
  api_key_inactive: 409,
  acme_client_active: 409,
  acme_client_exists: 409,
  acme_client_inactive: 409,
  enrollment_active: 409,
  enrollment_inactive: 409,
  enrollment_not_found: 404,
  administrator_exists: 409,
  approval_required: 403,
  pending_change_closed: 409,
  pending_change_not_found: 404,
  last_administrator: 409,
  second_factor_required: 403,
  sign_in_expired: 409,
  second_factor_not_found: 404,
  last_second_factor: 409,
  passkey_exists: 409,
  oidc_administrator: 409,
  request_timeout: 408,
  payload_too_large: 413,
  headers_too_large: 431,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
};

for (const [code, status] of Object.entries(statuses) as [ProblemCode, number][]) {
  test(`${code} has status ${status} and a sentence as its detail`, () => {
    const problem = new Problem(code);
    assert.equal(statusOf(code), status);
    assert.deepEqual(problem.body, { status, code, detail: problem.message });
    assert.match(problem.message, /^[A-Z].{10,}[.>"]$/s);
  });
}

test('problemCodes contains exactly the codes with an expected status', () => {
  assert.deepEqual([...problemCodes].sort(), Object.keys(statuses).sort());
});

test('a custom detail replaces the default detail, and the hint is appended to it', () => {
  const problem = new Problem('api_key_active', { detail: 'Key 7 is active.', hint: 'Revoke it.' });
  assert.equal(problem.message, 'Key 7 is active.');
  assert.deepEqual(problem.body, {
    status: 409,
    code: 'api_key_active',
    detail: 'Key 7 is active. Revoke it.',
  });
});

test('the body lists input errors in order and omits an empty list', () => {
  const errors = [
    { path: 'name', message: 'a name is needed' },
    { path: 'domains.0', message: 'not a domain' },
  ];
  const { body } = new Problem('invalid_request', { errors });
  assert.deepEqual(body.errors, errors);
  assert.equal('errors' in new Problem('invalid_request', { errors: [] }).body, false);
});

test('the cause is kept for the log and never appears in the body', () => {
  const cause = new Error('/var/lib/vault/vault.db is on fire');
  const problem = new Problem('internal', { cause });
  assert.equal(problem.cause, cause);
  assert.equal(JSON.stringify(problem.body).includes('fire'), false);
  assert(problem instanceof Error);
  assert.equal(problem.name, 'Problem');
});
