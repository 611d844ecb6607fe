/**
 * What a source file imports, exports and reaches for, read by the TypeScript compiler itself, so that no comment, no
 * string and no local variable of the same name is mistaken for the real thing.
 */
import { isBuiltin } from 'node:module';
import * as ast from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { createVirtualFileSystem } from 'typescript/unstable/fs';
import { API, type Checker } from 'typescript/unstable/sync';

export type Import = {
  /** As written, but with `node:` where it was left out. */
  readonly from: string;
  /** What is taken from the module at run time: exported names, or `*` for all of it. Types take nothing. */
  readonly names: readonly string[];
};

export type SourceFacts = {
  readonly path: string;
  readonly text: string;
  /** In the order of the file; also `import()`, `typeof import()`, and `export … from`. */
  readonly imports: readonly Import[];
  /** What the file hands on: names that it imported itself, or `*`. */
  readonly passedOn: readonly string[];
  readonly hasDefaultExport: boolean;
  /** Names declared nowhere in the file, as they are used: `fetch`, `Date.now`, `new Date()`, `new Date(…)`. */
  readonly globals: readonly string[];
  /** Names after a dot, and tags of templates. */
  readonly members: readonly string[];
  /** Strings and templates, the latter up to their first hole. */
  readonly strings: readonly string[];
  /** Regular expressions as written, with their flags. */
  readonly patterns: readonly string[];
  /** Where values are compared or looked up: `===` and its like, `includes()`, `get()` and the other finders. */
  readonly comparisons: readonly Comparison[];
};

export type Comparison = {
  /** As written, without its line breaks. */
  readonly text: string;
  /**
   * What the compared values are called: the last name of each (`hash` of `row.hash.toString('hex')`), or nothing for
   * literals and what is computed.
   */
  readonly names: readonly string[];
  /** Whether one side is a literal, which nobody keeps secret. */
  readonly withLiteral: boolean;
};

type Draft = { -readonly [Key in keyof SourceFacts]: Mutable<SourceFacts[Key]> } & {
  unresolved: ast.Identifier[];
};
type Mutable<T> = T extends readonly (infer Item)[] ? Item[] : T;

/** Text by path, such as `src/main.ts`. */
export type Sources = Readonly<Record<string, string>>;

/** The facts of the files of each house, all read in one run of the compiler. Throws where one is no TypeScript. */
export function readHouses(houses: readonly Sources[]): SourceFacts[][] {
  const files = houses.flatMap((sources, house) =>
    Object.entries(sources).map(([path, text]) => ({ house, path, text, at: `/${house}/${path}` })),
  );
  const compilerOptions = { noLib: true, types: [], module: 'preserve', moduleDetection: 'force' };
  const configuration = JSON.stringify({ compilerOptions, files: files.map(({ at }) => at) });
  const texts = Object.fromEntries(files.map(({ at, text }) => [at, text]));
  const api = new API({
    cwd: '/',
    fs: createVirtualFileSystem({ ...texts, '/tsconfig.json': configuration }),
  });
  try {
    const [project] = api.updateSnapshot({ openProjects: ['/tsconfig.json'] }).getProjects();
    const facts = houses.map((): SourceFacts[] => []);
    for (const { house, path, text, at } of files) {
      const tree = project?.program.getSourceFile(at);
      if (project === undefined || tree === undefined) throw new Error(`${path} was not read`);
      const [error] = project.program.getSyntacticDiagnostics(at);
      if (error !== undefined) throw new Error(`${path} is no TypeScript: ${error.text}`);
      facts[house]?.push(factsOf(path, text, tree, project.checker));
    }
    return facts;
  } finally {
    api.close();
  }
}

function factsOf(path: string, text: string, tree: ast.SourceFile, checker: Checker): SourceFacts {
  const draft: Draft = {
    path,
    text,
    imports: [],
    passedOn: [],
    hasDefaultExport: false,
    globals: [],
    members: [],
    strings: [],
    patterns: [],
    comparisons: [],
    unresolved: [],
  };
  const imported = new Set<string>();
  const visit = (node: ast.Node): void => {
    addImport(node, draft, imported);
    addExport(node, draft, imported);
    if (is.isPropertyAccessExpression(node)) draft.members.push(node.name.text);
    if (is.isTaggedTemplateExpression(node) && is.isIdentifier(node.tag)) draft.members.push(node.tag.text);
    if (is.isStringLiteral(node) || is.isNoSubstitutionTemplateLiteral(node) || is.isTemplateHead(node)) {
      draft.strings.push(node.text);
    }
    if (is.isRegularExpressionLiteral(node)) draft.patterns.push(node.text);
    const comparison = comparisonIn(node, text);
    if (comparison !== undefined) draft.comparisons.push(comparison);
    if (is.isIdentifier(node) && isValue(node)) draft.unresolved.push(node);
    node.forEachChild(visit);
  };
  visit(tree);
  const { unresolved, ...facts } = draft;
  const symbols = checker.getSymbolAtLocation(unresolved);
  const globals = unresolved.filter((node, index) => {
    // The one global that the compiler knows without a library.
    if (node.text === 'globalThis') return true;
    return is.isShorthandPropertyAssignment(node.parent)
      ? checker.getShorthandAssignmentValueSymbol(node.parent) === undefined
      : symbols[index] === undefined;
  });
  return { ...facts, globals: globals.map(useOf) };
}

function addImport(node: ast.Node, draft: Draft, imported: Set<string>): void {
  if (is.isImportDeclaration(node)) {
    const { importClause } = node;
    const names: string[] = importClause === undefined ? ['*'] : [];
    const named = importClause?.namedBindings;
    const isType = importClause?.phaseModifier === ast.SyntaxKind.TypeKeyword;
    const add = (local: ast.Identifier, name: string, isTypeOnly: boolean) => {
      imported.add(local.text);
      if (!isTypeOnly) names.push(name);
    };
    if (importClause?.name) add(importClause.name, 'default', isType);
    if (named && is.isNamespaceImport(named)) add(named.name, '*', isType);
    if (named && is.isNamedImports(named)) {
      for (const one of named.elements)
        add(one.name, (one.propertyName ?? one.name).text, isType || one.isTypeOnly);
    }
    draft.imports.push({ from: moduleName(node.moduleSpecifier), names });
  } else if (is.isCallExpression(node) && node.expression.kind === ast.SyntaxKind.ImportKeyword) {
    const [module] = node.arguments;
    if (module !== undefined) draft.imports.push({ from: moduleName(module), names: ['*'] });
  } else if (is.isImportTypeNode(node) && is.isLiteralTypeNode(node.argument)) {
    draft.imports.push({ from: moduleName(node.argument.literal), names: [] });
  } else if (is.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    draft.imports.push({ from: moduleName(node.moduleSpecifier), names: node.isTypeOnly ? [] : ['*'] });
  }
}

function addExport(node: ast.Node, draft: Draft, imported: ReadonlySet<string>): void {
  if (is.isExportAssignment(node) || node.kind === ast.SyntaxKind.DefaultKeyword) {
    // `default` is also a word of `switch`, but there it is not a node of its own.
    draft.hasDefaultExport = true;
  }
  if (!is.isExportDeclaration(node)) return;
  const { exportClause, moduleSpecifier } = node;
  if (exportClause === undefined || !is.isNamedExports(exportClause)) {
    draft.passedOn.push('*');
    return;
  }
  for (const { name, propertyName } of exportClause.elements) {
    const local = (propertyName ?? name).text;
    if (name.text === 'default') draft.hasDefaultExport = true;
    if (moduleSpecifier !== undefined || imported.has(local)) draft.passedOn.push(local);
  }
}

/** Text in place of what is computed, so that no allowance matches it. */
function moduleName(node: ast.Node): string {
  if (!is.isStringLiteral(node) && !is.isNoSubstitutionTemplateLiteral(node)) return '(computed)';
  return isBuiltin(node.text) && !node.text.startsWith('node:') ? `node:${node.text}` : node.text;
}

const equalities = [
  ast.SyntaxKind.EqualsEqualsEqualsToken,
  ast.SyntaxKind.ExclamationEqualsEqualsToken,
  ast.SyntaxKind.EqualsEqualsToken,
  ast.SyntaxKind.ExclamationEqualsToken,
];

/** Methods that say whether, or where, a value is. */
const finders = [
  ...['includes', 'indexOf', 'lastIndexOf', 'startsWith', 'endsWith', 'localeCompare', 'equals', 'compare'],
  ...['has', 'get', 'search', 'match'],
];

/** Methods that give the same value in another form. */
const forms = ['toString', 'slice', 'subarray', 'trim', 'normalize', 'toLowerCase', 'toUpperCase', 'from'];

function comparisonIn(node: ast.Node, text: string): Comparison | undefined {
  if (is.isBinaryExpression(node) && equalities.includes(node.operatorToken.kind)) {
    return comparisonOf(node, [node.left, node.right], text);
  }
  if (!is.isCallExpression(node) || !is.isPropertyAccessExpression(node.expression)) return undefined;
  if (!finders.includes(node.expression.name.text)) return undefined;
  return comparisonOf(node, [node.expression.expression, ...node.arguments], text);
}

function comparisonOf(node: ast.Node, sides: readonly ast.Node[], text: string): Comparison {
  return {
    text: text.slice(node.pos, node.end).trim().replace(/\s+/g, ' '),
    names: sides.map(lastName),
    withLiteral: sides.some(isPlain),
  };
}

function isPlain(node: ast.Node): boolean {
  return (
    is.isStringLiteral(node) ||
    is.isNoSubstitutionTemplateLiteral(node) ||
    is.isNumericLiteral(node) ||
    node.kind === ast.SyntaxKind.NullKeyword ||
    node.kind === ast.SyntaxKind.TrueKeyword ||
    node.kind === ast.SyntaxKind.FalseKeyword ||
    (is.isIdentifier(node) && node.text === 'undefined')
  );
}

function lastName(node: ast.Node): string {
  if (is.isIdentifier(node)) return node.text;
  if (is.isPropertyAccessExpression(node)) return node.name.text;
  if (is.isAwaitExpression(node) || is.isParenthesizedExpression(node) || is.isNonNullExpression(node)) {
    return lastName(node.expression);
  }
  if (!is.isCallExpression(node)) return '';
  const { expression } = node;
  const [first] = node.arguments;
  if (!is.isPropertyAccessExpression(expression) || !forms.includes(expression.name.text)) {
    return lastName(expression);
  }
  // `Buffer.from(x)` is x, and `x.slice(1)` is too.
  return expression.name.text === 'from' && first !== undefined
    ? lastName(first)
    : lastName(expression.expression);
}

/** Whether the identifier stands for a value, rather than for a member, a type or the name of something. */
function isValue(node: ast.Identifier): boolean {
  const { parent } = node;
  if (is.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (is.isBindingElement(parent)) return parent.propertyName !== node;
  const isNameOrType = [
    is.isImportSpecifier,
    is.isExportSpecifier,
    is.isQualifiedName,
    is.isTypeReferenceNode,
    is.isTypeQueryNode,
    is.isMetaProperty,
    is.isNamedTupleMember,
  ];
  return !isNameOrType.some((test) => test(parent));
}

function useOf(node: ast.Identifier): string {
  const { parent } = node;
  if (is.isPropertyAccessExpression(parent)) return `${node.text}.${parent.name.text}`;
  if (is.isNewExpression(parent)) return `new ${node.text}(${parent.arguments?.length ? '…' : ''})`;
  return node.text;
}
