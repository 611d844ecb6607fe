/**
 * What test/architecture-security.test.ts enforces beside the plan of the house: where answers are written, and, of what is
 * secret, who may look at it and who compares it. A new entry needs a reason that convinces a reader.
 */

/** Members by which an answer gets its status and headers. Only these files use them, so that no answer lacks any. */
export const answerMembers = [
  ...['writeHead', 'setHeader', 'setHeaders', 'appendHeader', 'writeEarlyHints', 'writeInformation'],
];

export const answerWriters: readonly { readonly file: string; readonly why: string }[] = [
  { file: 'src/http/request/reply.ts', why: 'the one place that writes answers' },
  {
    file: 'src/http/server/unreadable-request.ts',
    why: 'answers where Node has made no response to write to, with the headers of reply.ts',
  },
];

/** Headers that no answer has: what lets other sites in, and what tells what serves the vault. */
export const refusedHeaders = /^(access-control-|timing-allow-origin$|server$|x-powered-by$)/i;

/** The one file that compares secrets; everybody else asks it. */
export const constantTime = 'src/crypto/constant-time.ts';

/** What secrets, and what is kept of them, are called; the last name of what is compared. */
export const secretNames =
  /^(expose|jti)$|(secret|token|password|passphrase|hash|digest|mac|signature|cookie|privateKey|apiKey)$/i;

/** Comparisons that look as if they were about a secret. */
export const comparedSecrets: readonly {
  readonly file: string;
  readonly text: string;
  readonly why: string;
}[] = [
  { file: 'src/http/auth/session-cookie.ts', text: 'name === cookie', why: 'the names of cookies' },
  {
    file: 'src/domain/issuance/acme-authorizations.ts',
    text: 'row.token === token',
    why: 'the token of a challenge stands in a URL that the CA asks for',
  },
  {
    file: 'src/domain/backup/backup-file.ts',
    text: 'hash.digest().equals(digest)',
    why: 'the digest of a file, which stands in it; its MAC is compared in constant time',
  },
  {
    file: 'src/domain/backup/backup-file.ts',
    text: '(await digestOf(file, size - lastLineSize)).equals(page.digest)',
    why: 'the same',
  },
  {
    file: 'src/domain/issuance/opened-dns-providers.ts',
    text: 'known?.of.equals(row.sealed_secret)',
    why: 'two sealed blobs: whether a provider was changed since it was opened',
  },
  {
    file: 'src/domain/access/sign-in.ts',
    text: 'now?.password_hash !== row.password_hash',
    why: 'two rows of the database: whether the password was changed meanwhile',
  },
];

/** Who may call `expose()` on a secret, how often, and what for. */
export const exposers: readonly { readonly file: string; readonly calls: number; readonly why: string }[] = [
  {
    file: 'src/net/bundle-process.ts',
    calls: 1,
    why: 'the request with the password, to the process that reads imported files',
  },
  {
    file: 'src/crypto/bundle-transfer.ts',
    calls: 2,
    why: 'the password of a PKCS#12 file there, and the key that was read back, by pipes',
  },
  {
    file: 'src/domain/upgrade/kept-targets.ts',
    calls: 2,
    why: 'which hosts on this machine the settings of DNS providers and channels name',
  },
  {
    file: 'src/cli/commands/admin.ts',
    calls: 1,
    why: 'the password that was typed, into the input of the command',
  },
  { file: 'src/cli/commands/api-key.ts', calls: 1, why: 'shows a new key once, on standard output' },
  {
    file: 'src/cli/commands/audit/key-files.ts',
    calls: 1,
    why: 'writes a new API key into the file that was named for it',
  },
  {
    file: 'src/cli/commands/desired-state/desired-references.ts',
    calls: 1,
    why: 'reads the HMAC key of an external account out of its file',
  },
  {
    file: 'src/crypto/constant-time.ts',
    calls: 2,
    why: 'whether a secret is another than the one that is kept',
  },
  {
    file: 'src/cli/serving/own-process.ts',
    calls: 1,
    why: 'hands the master key to the process that checks a backup, by a pipe',
  },
  { file: 'src/cli/commands/notification.ts', calls: 1, why: 'shows a signing secret that was made, once' },
  { file: 'src/cli/commands/notification-add.ts', calls: 1, why: 'the same' },
  {
    file: 'src/cli/serving/open-metrics.ts',
    calls: 1,
    why: 'compares the token for metrics with what was presented',
  },
  { file: 'src/cli/terminal/prompt.ts', calls: 2, why: 'whether somebody typed the same twice' },
  {
    file: 'src/cli/serving/setup-link.ts',
    calls: 1,
    why: 'the setup link, for a terminal or the command that prints one',
  },
  {
    file: 'src/http/routes/api-key-routes.ts',
    calls: 1,
    why: 'shows a new key once, to the administrator who made it',
  },
  {
    file: 'src/http/routes/notification-routes.ts',
    calls: 1,
    why: 'shows a signing secret that was made, once, to the administrator who asked for it',
  },
  { file: 'src/http/auth/session-cookie.ts', calls: 1, why: 'sets the cookie of who has just signed in' },
  {
    file: 'src/http/tls/tls-alpn-certificate.ts',
    calls: 1,
    why: "hands the key of a challenge's certificate to TLS",
  },
  { file: 'src/http/tls/tls-files.ts', calls: 1, why: 'writes the key of HTTPS as PEM, for TLS' },
  { file: 'src/http/tls/tls-identity.ts', calls: 1, why: 'hands the key of HTTPS to TLS' },
  { file: 'src/domain/backup/backup.ts', calls: 1, why: 'looks whether a passphrase is long enough' },
  {
    file: 'src/domain/notifications/channel-settings.ts',
    calls: 2,
    why: 'reads the settings of a notification channel, and puts in the key that was made for it',
  },
  {
    file: 'src/domain/notifications/notification-delivery.ts',
    calls: 1,
    why: 'reads the settings of a notification channel, to use them',
  },
  { file: 'src/channels/webhook-signature.ts', calls: 1, why: 'signs webhooks' },
  {
    file: 'src/domain/issuance/dns-providers.ts',
    calls: 1,
    why: 'reads the secret file of a new DNS provider',
  },
  {
    file: 'src/domain/issuance/dns-records.ts',
    calls: 1,
    why: 'reads the credentials of a DNS provider, to use them',
  },
  {
    file: 'src/crypto/integrity-key.ts',
    calls: 2,
    why: 'derives a key for each purpose from the integrity secret',
  },
  { file: 'src/domain/versions/downloads.ts', calls: 1, why: 'the download of a private key' },
  {
    file: 'src/domain/master-key/master-key-check.ts',
    calls: 2,
    why: 'a sentence that is no secret, sealed to see whether the key opens it, and the integrity secret after it',
  },
  { file: 'src/domain/certificates/own-certificate.ts', calls: 1, why: 'hands the key of HTTPS on, as PEM' },
  { file: 'src/domain/access/passwords.ts', calls: 1, why: 'what a new password must be like' },
  {
    file: 'src/domain/backup/restore-drafts.ts',
    calls: 1,
    why: 'writes the master key of a backup into its file',
  },
  {
    file: 'src/domain/versions/versions.ts',
    calls: 2,
    why: 'writes a new key as PEM, sealed at once; reads it to use it again or to revoke',
  },
  { file: 'src/acme/signed-request.ts', calls: 1, why: 'signs the binding of an external account' },
  { file: 'src/dns/providers/azure-dns.ts', calls: 1, why: 'the body of the request for a token' },
  { file: 'src/dns/providers/bearer-token.ts', calls: 1, why: 'a header towards the API' },
  { file: 'src/dns/providers/cloudflare.ts', calls: 1, why: 'a header towards the API' },
  { file: 'src/dns/providers/desec.ts', calls: 1, why: 'a header towards the API' },
  { file: 'src/dns/providers/digitalocean.ts', calls: 1, why: 'a header towards the API' },
  { file: 'src/dns/providers/google-cloud-dns.ts', calls: 1, why: 'signs the request for a token' },
  { file: 'src/dns/providers/hetzner.ts', calls: 1, why: 'a header towards the API' },
  { file: 'src/dns/providers/json-api.ts', calls: 2, why: 'takes credentials out of what APIs say back' },
  { file: 'src/dns/providers/ovh.ts', calls: 3, why: 'headers towards the API, and their signature' },
  { file: 'src/dns/providers/route53.ts', calls: 2, why: 'signs requests to the API' },
  { file: 'src/dns/providers/tsig.ts', calls: 1, why: 'signs dynamic updates' },
  { file: 'src/dns/providers/webhook.ts', calls: 1, why: 'a header towards the webhook' },
  {
    file: 'src/crypto/acme-validation-certificate.ts',
    calls: 1,
    why: "writes the key of a challenge's certificate as PEM",
  },
  {
    file: 'src/crypto/certificate-bundle.ts',
    calls: 1,
    why: 'compares the key of a bundle with its certificate',
  },
  { file: 'src/crypto/key-pair.ts', calls: 1, why: 'a key object to sign with' },
  {
    file: 'src/crypto/master-key.ts',
    calls: 2,
    why: 'looks at the length, and derives the keys of each purpose',
  },
  {
    file: 'src/crypto/master-key-file.ts',
    calls: 2,
    why: 'looks at the length of a key, and writes it into its file',
  },
  {
    file: 'src/crypto/passphrase-key.ts',
    calls: 2,
    why: 'derives a key from a passphrase, and seals with it',
  },
  { file: 'src/crypto/password-hash.ts', calls: 1, why: 'hashes a password' },
  { file: 'src/crypto/pkcs12.ts', calls: 1, why: 'opens a PKCS#12 file' },
  { file: 'src/crypto/sealing.ts', calls: 1, why: 'encrypts' },
  { file: 'src/crypto/session-token.ts', calls: 1, why: 'hashes a setup token' },
];

/** How the text of an answer begins, or a line of its head. */
export const answerText = /^HTTP\/\d/;
