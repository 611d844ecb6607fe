/**
 * Which file may import which, checked by `npm run check:imports`. test/architecture.test.ts tries each rule on a source
 * that breaks it.
 */

/** From the top. A file imports its own folder and lower floors; folders on the same floor do not import each other. */
const floors = [
  ['main.ts'],
  ['cli'],
  ['http', 'jobs'],
  ['domain'],
  ['acme', 'dns', 'channels', 'targets'],
  ['net'],
  ['crypto', 'db'],
  ['base'],
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

/** The rooms of the console, from the top. The files beside them put the pages together. */
const consoleRooms = [
  ['pages'],
  ['forms', 'installer'],
  ['certificates'],
  ['components'],
  ['data'],
  ['text'],
];

const inRooms = (rooms) => `^assets/console/(?:${rooms.join('|')})/`;

const consoleUpwards = consoleRooms.flatMap((floor, index) =>
  floor.map((room) => ({
    name: `console-${room}-imports-upwards`,
    comment: 'A file of the console imports its own room, lower rooms and the files beside the rooms.',
    severity: 'error',
    from: { path: inRooms([room]) },
    to: {
      path: inRooms(
        consoleRooms
          .slice(0, index + 1)
          .flat()
          .filter((other) => other !== room)
          // For the top room, a name that no room has.
          .concat('-'),
      ),
    },
  })),
);

const forbidden = [
  ...consoleUpwards,
  {
    name: 'console-imports-server',
    comment: 'The console imports from src only what base/ has, which runs in a browser too.',
    severity: 'error',
    from: { path: '^assets/console/' },
    to: { path: '^src/', pathNot: '^src/base/' },
  },
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
    from: { path: '^(?:src|assets/console)/' },
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
  ...['http', 'cli', 'crypto'].map((floor) => ({
    name: `no-circle-of-rooms-in-${floor}`,
    comment: 'The folders of a floor stay free of cycles.',
    severity: 'error',
    scope: 'folder',
    from: { path: `^src/${floor}/` },
    to: { path: `^src/${floor}/`, circular: true },
  })),
  {
    name: 'ways-in-import-db',
    comment: 'Handlers and commands call domain/, never db/.',
    severity: 'error',
    from: { path: '^src/(?:http|jobs|cli)/' },
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
    name: 'engine-outside-its-room',
    comment:
      'Only the files directly in db/, and the thread, import an engine; tables and domain code do not know which one it is.',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/(?:db/(?:sqlite/|[^/]+$)|writer-thread\\.ts$)' },
    to: { path: '^src/db/sqlite/' },
  },
  {
    name: 'driver-outside-its-engine',
    comment: 'Only db/sqlite imports the driver of SQLite.',
    severity: 'error',
    from: { path: '^src/db/', pathNot: '^src/db/sqlite/' },
    to: { path: '(?:^|/)(?:better-sqlite3|node:sqlite|sqlite)(?:/|$)', pathNot: '^src/' },
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

export default {
  forbidden,
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
