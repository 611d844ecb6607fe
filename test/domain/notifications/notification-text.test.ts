/** The texts of notifications: a subject line, advice that people can act on, and no lines that others could forge. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageText } from '../../../src/domain/notifications/notification-text.ts';

const at = Date.parse('2026-11-21T12:00:00Z');
const web = {
  certificate: 'web',
  domains: ['www.a.test', 'a.test'],
  issuer: 'letsencrypt',
  expires_at: '2026-12-01T12:00:00Z',
};
const key = { id: 3, name: 'agent', prefix: 'vk_abcdefghijkl' };

test('every notice has a subject that says what happened', () => {
  const cases: [event: string, data: object, subject: string][] = [
    ['renewal.failed', { ...web, error: 'no', failed_attempts: 1, told_before: 0 }, 'web: renewal failed'],
    [
      'renewal.failed',
      { ...web, error: 'no', failed_attempts: 7, told_before: 1, since: '2026-11-20T12:00:00Z' },
      'web: renewal still failing after 7 attempts',
    ],
    ['renewal.recovered', { ...web, version: 2, since: '2026-11-20T12:00:00Z' }, 'web: renewed again'],
    ['certificate.issued', { ...web, version: 2 }, 'web: version 2 issued'],
    [
      'pending_change.created',
      {
        summary: 'Delete the certificate web',
        requested_by: 'admin:alice',
        role: 'operator',
        expires_at: web.expires_at,
      },
      'approval needed: Delete the certificate web',
    ],
    [
      'scan.found',
      {
        scan: 3,
        networks: ['10.0.0.0/24'],
        count: 1,
        servers: [{ address: '10.0.0.9:443', issuer: 'CN=Old', names: [], not_after: web.expires_at }],
      },
      'scan 3 found 10.0.0.9:443 with a certificate of CN=Old',
    ],
    [
      'scan.found',
      { scan: 3, networks: ['10.0.0.0/24'], count: 7000, servers: [] },
      'scan 3 found 7000 servers with certificates that the vault does not have',
    ],
    ['certificate.expiring', { ...web, urgency: 'emergency', renews_itself: true }, 'web expires in 10 days'],
    ['certificate.expiring', { ...web, issuer: null, urgency: 'over' }, 'web has expired'],
    ['certificate.recovered', { ...web, version: 2 }, 'web: renewed before it expired'],
    [
      'api_key.expiring',
      { api_key: key, certificates: ['*'], expires_at: '2026-11-21T13:30:00Z', urgency: 'emergency' },
      'API key agent expires in 1 hour',
    ],
    [
      'api_key.expiring',
      { api_key: key, certificates: ['*'], expires_at: '2026-11-21T11:30:00Z', urgency: 'over' },
      'API key agent has expired',
    ],
    [
      'private_ca.expiring',
      {
        private_ca: 'dev',
        role: 'root',
        expires_at: web.expires_at,
        urgency: 'emergency',
        advice: 'Replace it.',
        fix: 'do',
      },
      'private CA dev: root expires in 10 days',
    ],
    [
      'private_ca.expiring',
      {
        private_ca: 'dev',
        role: 'intermediate',
        expires_at: web.expires_at,
        urgency: 'over',
        advice: 'Do.',
        fix: 'x',
      },
      'private CA dev: intermediate has expired',
    ],
    [
      'private_ca.recovered',
      { private_ca: 'dev', role: 'root', expires_at: web.expires_at, since: web.expires_at },
      'private CA dev: renewed',
    ],
    ['backup.overdue', { last_backup_at: null, every_seconds: 3600, directory: '/b' }, 'no backup yet'],
    ['backup.overdue', { last_backup_at: '2026-11-20T12:00:00Z', every_seconds: 1 }, 'backup is overdue'],
    [
      'backup.overdue',
      {
        last_backup_at: '2026-11-20T12:00:00Z',
        every_seconds: 1,
        directory: '/b',
        set_aside: {
          path: '/b/v.smaller.backup',
          holds: { certificates: 1, versions: 2 },
          before: { certificates: 30, versions: 400 },
        },
      },
      'backup is much smaller than the previous one',
    ],
    ['backup.recovered', { last_backup_at: web.expires_at, since: web.expires_at }, 'backups work again'],
    [
      'disk.low',
      { state: 'low', free_bytes: 8e8, low_below_bytes: 1e9, since: web.expires_at },
      'disk space is low',
    ],
    [
      'disk.low',
      { state: 'critical', free_bytes: 2e8, low_below_bytes: 1e9, since: web.expires_at },
      'disk space is running out',
    ],
    ['disk.recovered', { state: 'ok', since: web.expires_at }, 'disk space is sufficient again'],
    ['test', { channel: 'ops' }, 'test notification'],
  ];
  for (const [event, data, subject] of cases) {
    const words = messageText(event, { ...data }, at);
    assert.equal(words.subject, subject);
    assert(!/undefined|null|NaN|\[object/.test(words.text), words.text);
    for (const line of words.text.split('\n')) assert(line.length <= 78, line);
  }
});

test('the text of a failed renewal says what happened and what to do', () => {
  const data = {
    ...web,
    error: 'the CA says no',
    failed_attempts: 1,
    told_before: 0,
    next_attempt_at: '2026-11-21T12:01:00Z',
  };
  assert.equal(
    messageText('renewal.failed', data, at).text,
    `Renewal of certificate web failed.

  Names:         www.a.test, a.test
  Issuer:        letsencrypt
  Error:         the CA says no
  Attempts:      1
  Next attempt:  2026-11-21T12:01:00Z
  Valid until:   2026-12-01T12:00:00Z (in 10 days)

The vault retries automatically. To see what happened so far:

  vault certificate show --name web
  vault renewals list --failed --name web

-- 
Certificate Vault
`,
  );
});

test('the error of a CA cannot forge lines of the text or fill a mailbox', () => {
  const error = `no\r\n\r\nBcc: x@a.test\u001b[2J\u202e${'x'.repeat(100_000)}`;
  const { text, subject } = messageText('renewal.failed', { ...web, error, failed_attempts: 1 }, at);
  assert(!/^Bcc/m.test(text) && !text.includes('\u001b') && !text.includes('\u202e'));
  assert(text.length < 2500);
  assert(!subject.includes('\n'));
});
