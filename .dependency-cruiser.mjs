/**
 * Which file may import which, checked by `npm run check:imports`. `forbidden` holds the
 * rules, `required` makes sure that no exception outlives its need. test/architecture.test.ts tries each rule on a source
 * that breaks it.
 */

/** From the top. A file imports its own folder and lower floors; folders on the same floor do not import each other. */
const floors = [
  ['main.ts'],
  ['cli'],
  ['http', 'jobs'],
  ['domain'],
  ['acme', 'dns', 'channels'],
  ['net'],
  ['crypto', 'db'],
  ['base'],
];

/** Files of http/, cli/ and jobs/ that still import db/. Remove a file when it no longer does; add none. */
export const stillImportsDb = [
  'src/cli/commands/audit/audit-filter.ts',
  'src/cli/commands/audit/audit-tail.ts',
  'src/cli/commands/audit/key-files.ts',
  'src/cli/commands/certificate/certificate-create.ts',
  'src/cli/commands/certificate/certificate.ts',
  'src/cli/commands/certificate/watch-renewal.ts',
  'src/cli/commands/dns-provider.ts',
  'src/cli/commands/doctor-places.ts',
  'src/cli/commands/doctor.ts',
  'src/cli/commands/issuer.ts',
  'src/cli/commands/master-key.ts',
  'src/cli/commands/notification.ts',
  'src/cli/commands/renewals.ts',
  'src/cli/commands/version.ts',
  'src/cli/completion/completion.ts',
  'src/cli/runtime/open-vault.ts',
  'src/http/metrics/metrics.ts',
  'src/http/openapi/certificate-admin-schemas.ts',
  'src/http/routes/about-routes.ts',
  'src/http/routes/acme-challenge-routes.ts',
  'src/http/routes/audit-routes.ts',
  'src/http/routes/certificate-cursor.ts',
  'src/http/routes/certificate-import-routes.ts',
  'src/http/routes/certificate-routes.ts',
  'src/http/routes/current-certificate.ts',
  'src/http/routes/dns-provider-routes.ts',
  'src/http/routes/issuer-routes.ts',
  'src/http/routes/notification-routes.ts',
  'src/http/routes/operator-answers.ts',
  'src/http/routes/renewal-routes.ts',
  'src/http/server/dispatch.ts',
  'src/http/tls/tls-alpn-certificate.ts',
];

const inside = (folders) => `^src/(?:${folders.map((name) => name.replace('.', '\\.')).join('|')})(?:/|$)`;

/** For each folder, the floors above it and the folders beside it. */
const upwards = floors.flatMap((floor, index) =>
  floor.map((folder) => ({
    name: `${folder.replace('.ts', '')}-imports-upwards`,
    comment: 'A file imports its own folder and lower floors.',
    severity: 'error',
    from: { path: inside([folder]) },
    to: {
      path: inside(
        floors
          .slice(0, index + 1)
          .flat()
          .filter((other) => other !== folder),
      ),
    },
  })),
);

const forbidden = [
  ...upwards.filter(({ to }) => to.path !== inside([])),
  {
    name: 'no-floor',
    comment: 'Each folder of src has a floor.',
    severity: 'error',
    from: {},
    to: { path: '^src/', pathNot: inside(floors.flat()) },
  },
  {
    name: 'no-circle',
    comment: 'Files do not import each other in a circle, not even for types.',
    severity: 'error',
    from: { path: '^src/' },
    to: { circular: true },
  },
  {
    name: 'no-circle-of-capabilities',
    comment: 'The folders of src/domain stay free of cycles.',
    severity: 'error',
    scope: 'folder',
    from: { path: '^src/domain/' },
    to: { path: '^src/domain/', circular: true },
  },
  {
    name: 'ways-in-import-db',
    comment: 'Handlers and commands call domain/, never db/.',
    severity: 'error',
    from: { path: '^src/(?:http|cli)/', pathNot: stillImportsDb },
    to: { path: '^src/db/' },
  },
  {
    name: 'base-imports-library',
    comment: 'base/ imports nothing but itself and node: modules.',
    severity: 'error',
    from: { path: '^src/base/' },
    to: { pathNot: '^src/', dependencyTypesNot: ['core'] },
  },
  {
    name: 'driver-outside-db',
    comment: 'Only db/ imports the drivers and the query builder.',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/db/' },
    to: { path: '(?:^|/)(?:better-sqlite3|kysely|pg|node:sqlite|sqlite)(?:/|$)', pathNot: '^src/' },
  },
  {
    name: 'outside-of-src',
    comment: 'The product imports itself, its libraries, and the version in package.json.',
    severity: 'error',
    from: { path: '^src/' },
    to: { dependencyTypes: ['local', 'localmodule'], pathNot: '^src/|^package\\.json$' },
  },
  {
    name: 'undeclared-library',
    comment: 'Libraries of the product are dependencies in package.json, not devDependencies.',
    severity: 'error',
    from: { path: '^src/' },
    to: {
      dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'npm-optional', 'npm-peer'],
      dependencyTypesNot: ['type-only'],
    },
  },
  {
    name: 'unresolvable',
    comment: 'Each import names a file, a library or a node: module that exists.',
    severity: 'error',
    from: { path: '^src/' },
    to: { couldNotResolve: true },
  },
];

const required = stillImportsDb.map((file) => ({
  name: 'exception-no-longer-needed',
  comment: `Remove ${file} from stillImportsDb in .dependency-cruiser.mjs.`,
  severity: 'error',
  module: { path: `^${file}$` },
  to: { path: '^src/db/' },
}));

export default {
  forbidden,
  ...(required.length > 0 && { required }),
  options: {
    // TypeScript 7 has no parser in JavaScript that dependency-cruiser could use.
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      mainFields: ['module', 'main', 'types'],
    },
  },
};
