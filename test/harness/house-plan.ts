/**
 * The plan of the house that test/architecture.test.ts enforces: storeys, sizes, names, and the few places where clock,
 * timers, randomness, network and environment come in. A new entry needs a reason that convinces a reader.
 */

/** From the top. A file imports its own folder and lower storeys; folders side by side do not know each other. */
export const storeys = [
  ['main.ts'],
  ['cli'],
  ['http', 'jobs'],
  ['domain'],
  ['acme', 'dns', 'channels'],
  ['net'],
  ['crypto', 'db'],
  ['base'],
] as const;

/** Of a file in src and assets. */
export const maxLines = 250;

export const refusedWords = ['utils', 'util', 'helpers', 'helper', 'manager', 'service', 'common', 'misc'];

/** Tests in these folders are about the whole executable or the client script, or are no tests. */
export const foldersThatMirrorNothing = [
  'docs',
  'executable',
  'harness',
  'installer',
  'screenshots',
  'torture',
];

/** Tests about several files at once. Others are called like the file that they test, or that and a dash and more. */
export const testsThatMirrorNothing: readonly { readonly file: string; readonly why: string }[] = [
  { file: 'test/architecture.test.ts', why: 'the house as a whole' },
  { file: 'test/architecture-security.test.ts', why: 'the same, for what keeps secrets safe' },
  { file: 'test/architecture-patterns.test.ts', why: 'every regular expression of the product' },
  { file: 'test/reader-time.test.ts', why: 'every reader of what strangers send' },
  {
    file: 'test/cli/full-disk.test.ts',
    why: 'commands, storage and the files under them, where nothing fits any more',
  },
  { file: 'test/db/tables/query-plans.test.ts', why: 'every query of a request and of the scheduler' },
  {
    file: 'test/http/routes/artifact-version.test.ts',
    why: 'what a client does with ?version= over several routes',
  },
  {
    file: 'test/http/database-attacker.test.ts',
    why: 'what write access to the database alone gains, over all of the vault',
  },
  {
    file: 'test/http/routes/conditional-download.test.ts',
    why: 'routes, cache and storage must agree on a 304',
  },
  {
    file: 'test/http/surface-fuzz.test.ts',
    why: 'every operation of the API document, under hostile requests',
  },
  {
    file: 'test/http/routes/download-audit.test.ts',
    why: 'routes, storage and server keep the promise together',
  },
];

/**
 * What is watched: globals as they are used, and `module name` for what is taken from a module. `.*` and ` *` stand for
 * whatever it is.
 */
export const watched: Readonly<Record<string, readonly string[]>> = {
  clock: ['Date', 'Date.now', 'new Date()', 'performance.*', 'Temporal.*', 'node:perf_hooks *'],
  timers: [
    ...['setTimeout', 'setInterval', 'setImmediate', 'AbortSignal.timeout', 'scheduler.*'],
    ...['node:timers *', 'node:timers/promises *'],
  ],
  randomness: [
    ...['Math', 'Math.random', 'crypto.*'],
    ...[
      ...['randomBytes', 'randomFill', 'randomFillSync', 'randomInt', 'randomUUID', 'randomUUIDv7'],
      ...['getRandomValues', 'webcrypto', 'subtle', 'default', 'createDiffieHellman', 'createECDH'],
      ...['generateKey', 'generateKeyPair', 'generatePrime'].flatMap((name) => [name, `${name}Sync`]),
    ].map((name) => `node:crypto ${name}`),
  ],
  network: [
    ...['fetch', 'WebSocket.*', 'EventSource.*', 'undici *'],
    ...['http', 'https', 'http2', 'net', 'tls', 'dns', 'dns/promises', 'dgram'].map(
      (name) => `node:${name} *`,
    ),
  ],
  environment: [
    ...['process.*', 'console.*', 'globalThis.*', 'global.*', 'navigator.*'],
    ...['process', 'os', 'child_process', 'worker_threads', 'cluster', 'module', 'vm', 'inspector'].map(
      (name) => `node:${name} *`,
    ),
  ],
};

/** Members of watched modules that only compute. */
export const pure = [
  'node:net isIP',
  'node:net isIPv4',
  'node:net isIPv6',
  'node:net BlockList',
  'node:http STATUS_CODES',
  'node:tls createSecureContext',
  'node:tls rootCertificates',
];

/** Where the world comes in, and why there. An entry that nothing needs any more is refused too. */
export const allowed: readonly {
  readonly file: string;
  readonly uses: readonly string[];
  readonly why: string;
}[] = [
  {
    file: 'src/base/world.ts',
    uses: ['Date.now', 'node:crypto randomBytes', 'node:timers/promises *'],
    why: 'the real World: everybody else is handed one',
  },
  {
    file: 'src/net/outbound-http.ts',
    uses: ['node:http Agent', 'node:http request', 'node:https Agent', 'node:https request'],
    why: 'the one HTTP client towards CAs and DNS providers',
  },
  {
    file: 'src/net/outbound-guard.ts',
    uses: ['node:dns lookup'],
    why: 'names are resolved where the answer is judged, and nowhere else',
  },
  {
    file: 'src/net/outbound-socket.ts',
    uses: ['node:net connect'],
    why: 'mail goes over TCP; the library would resolve names itself',
  },
  {
    file: 'src/dns/resolver/system-resolver.ts',
    uses: ['node:dns/promises Resolver'],
    why: 'the one place that asks name servers what everybody sees',
  },
  {
    file: 'src/dns/resolver/tcp-exchange.ts',
    uses: ['node:net connect'],
    why: 'dynamic DNS updates are no HTTP: one message there and one back over TCP',
  },
  {
    file: 'src/net/hook-process.ts',
    uses: ['node:child_process spawn', 'process.env', 'process.kill'],
    why: 'hooks are programs: they get PATH, HOME and LANG of this process, and end with all they started',
  },
  {
    file: 'src/domain/audit/audit-batch.ts',
    uses: ['process.nextTick'],
    why: 'a batch begins when all requests of a turn have come as far; that takes no time, and no test needs another one',
  },
  { file: 'src/main.ts', uses: ['process.*'], why: 'hands arguments, environment and streams to cli/' },
  {
    file: 'src/cli/serving/own-process.ts',
    uses: ['node:child_process spawn'],
    why: 'a backup is read through by a process of its own, which is this program again',
  },
  {
    file: 'src/net/own-program.ts',
    uses: ['process.execPath'],
    why: 'where this program is, to start it again',
  },
  {
    file: 'src/net/bundle-process.ts',
    uses: ['node:child_process spawn'],
    why: 'imported files are read by a process of its own, which is this program again, with limits',
  },
  {
    file: 'src/cli/runtime/log-output.ts',
    uses: ['process.once'],
    why: 'what was logged last is written before the process ends, however it does',
  },
  {
    file: 'src/cli/workers/worker-process.ts',
    uses: [
      ...['node:cluster *', 'process.argv', 'process.connected', 'process.disconnect', 'process.execPath'],
      ...['process.on', 'process.pid', 'process.platform', 'process.ppid', 'process.send'],
    ],
    why: 'several processes serve one vault: they are started here, and talk through here',
  },
  {
    file: 'src/cli/runtime/stop-signal.ts',
    uses: ['process.once'],
    why: 'signals are how a service manager says stop',
  },
  {
    file: 'src/cli/terminal/private-files.ts',
    uses: ['process.geteuid', 'process.argv'],
    why: "what is somebody else's depends on the user; the hint repeats the command for the right one",
  },
  {
    file: 'src/cli/serving/supervisor.ts',
    uses: ['node:child_process spawn', 'process.pid'],
    why: "systemd is told by its own program, as Node has no socket of systemd's kind; the watchdog names a process",
  },
  {
    file: 'src/cli/settings/settings.ts',
    uses: ['node:os homedir', 'node:os userInfo'],
    why: 'the default of --data-dir depends on the user',
  },
  {
    file: 'src/cli/commands/version.ts',
    uses: ['process.versions', 'process.platform', 'process.arch'],
    why: 'whoever reports a fault is asked for the runtime and the platform',
  },
  {
    file: 'src/crypto/key-pair.ts',
    uses: ['node:crypto generateKeyPair'],
    why: "a key pair cannot be made from the World's bytes; OpenSSL has a generator of its own",
  },
  {
    file: 'src/crypto/pkcs12.ts',
    uses: ['node:crypto *'],
    why: 'parsePKCS12 is not in @types/node yet, so it cannot be imported by name',
  },
  {
    file: 'src/http/server/connection-limits.ts',
    uses: ['setInterval'],
    why: 'what sockets may take is measured in real time, as node:http measures it beside',
  },
  {
    file: 'src/http/server/fair-turns.ts',
    uses: ['setImmediate'],
    why: 'turns of the event loop are what connections share',
  },
  {
    file: 'src/http/server/pipelining.ts',
    uses: ['setTimeout'],
    why: 'a client that has said its last word is a matter of the connection, like its limits',
  },
  {
    file: 'src/http/request/reply.ts',
    uses: ['setTimeout'],
    why: 'a client that is silent after its answer is a matter of the connection, like its limits',
  },
  {
    file: 'src/http/server/listening.ts',
    uses: ['node:net createServer'],
    why: 'a port that processes are to share is tried first, so that nobody else shares it',
  },
  {
    file: 'src/jobs/syslog-connection.ts',
    uses: ['node:dgram createSocket', 'node:net connect', 'node:tls connect'],
    why: 'collectors of audit events speak syslog, not HTTP',
  },
  {
    file: 'src/cli/settings/audit-settings.ts',
    uses: ['node:os hostname'],
    why: 'a syslog message names the host that it comes from',
  },
  { file: 'src/http/server/server.ts', uses: ['node:http createServer'], why: 'the listener' },
  {
    file: 'src/http/tls/https-server.ts',
    uses: ['node:https createServer'],
    why: 'the listener for HTTPS, which reads the first message before TLS does',
  },
  {
    file: 'src/http/tls/tls-alpn-listener.ts',
    uses: ['node:net createServer', 'node:tls createServer'],
    why: 'the listener for tls-alpn-01, which reads the first message before TLS does',
  },
  {
    file: 'src/db/sqlite/embedded-addon.ts',
    uses: ['process.env', 'process.dlopen', 'node:os tmpdir'],
    why: 'SQLite is loaded out of the executable by way of a file, before there are settings',
  },
];

/** What only db/ does. `prepare` is better-sqlite3's, the rest is Kysely's. */
export const queryMembers = [
  ...['sql', 'selectFrom', 'insertInto', 'replaceInto', 'updateTable', 'deleteFrom', 'mergeInto'],
  'prepare',
];

/** How SQL begins, also with line breaks in it. */
export const queryText =
  /^\s*(SELECT\s.*\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM|(CREATE|ALTER|DROP)\s+TABLE|PRAGMA\s)/is;
