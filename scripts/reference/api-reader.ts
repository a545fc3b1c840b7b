// Reads the public names of every entry out of the source, with the comments on their declarations. It asks the compiler 5.9, which
// the tests of types bring: TypeScript 7 has no interface for programs. What the pages look like is for api-pages.ts.
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import ts from 'typescript-5.9'

export type PublicName = {
  readonly name: string
  readonly kind: 'function' | 'class' | 'type' | 'value'
  /** The comment on its declaration, or an empty text. */
  readonly says: string
  /** Its declarations as they are written, without comments and bodies. Empty for what is told by its members. */
  readonly code: string
  readonly members: readonly Member[]
  /** Where it is declared, from the root of the repository. */
  readonly file: string
}
export type Member = {
  readonly name: string
  readonly isOptional: boolean
  /** Its type, or its signature, as it is written. */
  readonly type: string
  readonly says: string
}
export type Entry = {
  /** As it is imported, such as `terret/tools`. */
  readonly name: string
  readonly file: string
  /** Names that no entry before this one has. */
  readonly own: readonly PublicName[]
  /** Names that stand in an entry before this one, with that entry. */
  readonly shared: readonly { readonly name: string; readonly entry: string; readonly as: string }[]
}

type Reading = { readonly checker: ts.TypeChecker; readonly root: string }

export function readEntries(root: string): readonly Entry[] {
  const entries = entryFiles(root)
  const program = ts.createProgram(
    entries.map(({ file }) => posix.join(root, file)),
    compilerOptions(root),
  )
  const reading = { checker: program.getTypeChecker(), root }
  const seen = new Map<ts.Symbol, { readonly entry: string; readonly as: string }>()
  return entries.map(({ name, file }) => {
    const source = program.getSourceFile(posix.join(root, file))
    const module = source && reading.checker.getSymbolAtLocation(source)
    if (!module) throw new Error(`${file} exports nothing, or is not there.`)
    const own: PublicName[] = []
    const shared: Entry['shared'][number][] = []
    for (const exported of reading.checker.getExportsOfModule(module)) {
      const symbol = targetOf(reading, exported)
      const before = seen.get(symbol)
      if (before) shared.push({ name: exported.name, ...before })
      else own.push(publicName(reading, exported.name, symbol))
      if (!before) seen.set(symbol, { entry: name, as: exported.name })
    }
    return { name, file, own, shared }
  })
}

function entryFiles(root: string): readonly { readonly name: string; readonly file: string }[] {
  const { exports } = JSON.parse(readFileSync(posix.join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>
  }
  return Object.entries(exports).flatMap(([path, target]) => {
    if (typeof target === 'string') return []
    const file = target.types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')
    return [{ name: path.replace('.', 'terret'), file }]
  })
}

function compilerOptions(root: string): ts.CompilerOptions {
  const read = ts.readConfigFile(posix.join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path))
  const { options } = ts.parseJsonConfigFileContent(
    { ...(read.config as object), include: [], files: ['src/index.ts'] },
    ts.sys,
    root,
  )
  return { ...options, noEmit: true, incremental: false }
}

function targetOf({ checker }: Reading, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function publicName(reading: Reading, name: string, symbol: ts.Symbol): PublicName {
  const declarations = symbol.declarations ?? []
  const [first] = declarations
  if (first === undefined) throw new Error(`${name} is declared nowhere.`)
  const members = membersOf(reading, symbol, first)
  // A type and a value of one name, as `Harness`: the value says how to get one.
  const value = declarations.find((node) => kindOf(node) !== 'type') ?? first
  const isTable = members.length > 0 && kindOf(value) === 'type'
  return {
    name,
    kind: kindOf(value),
    says: commentOf(reading, symbol),
    code: isTable ? headOf(first) : codeOf(value === first ? declarations : [value]),
    members,
    file: posix.relative(reading.root, first.getSourceFile().fileName),
  }
}

function kindOf(node: ts.Declaration): PublicName['kind'] {
  if (ts.isFunctionDeclaration(node)) return 'function'
  if (ts.isClassDeclaration(node)) return 'class'
  return ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node) ? 'type' : 'value'
}

/** The comment for users, or what stands behind the declaration in its line, as in the types of events. */
function commentOf({ checker }: Reading, symbol: ts.Symbol): string {
  const said = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim()
  if (said !== '') return said
  const [node] = symbol.declarations ?? []
  if (node === undefined) return ''
  const text = node.getSourceFile().text
  const line = text.slice(node.getEnd(), text.indexOf('\n', node.getEnd()))
  return /^[,;]?\s*\/\/ ?(.*)$/.exec(line)?.[1]?.trim() ?? ''
}

function membersOf(reading: Reading, symbol: ts.Symbol, node: ts.Declaration): readonly Member[] {
  if (ts.isClassDeclaration(node)) return node.members.flatMap((member) => classMember(reading, member))
  if (!ts.isTypeAliasDeclaration(node) && !ts.isInterfaceDeclaration(node)) return []
  const type = reading.checker.getDeclaredTypeOfSymbol(symbol)
  if (type.isUnion() || type.getCallSignatures().length > 0 || !hasFields(node)) return []
  return reading.checker.getPropertiesOfType(type).flatMap((property) => member(reading, property))
}

/** Whether a type is written as fields, so that a table of them says it. */
function hasFields(node: ts.Node): boolean {
  if (ts.isInterfaceDeclaration(node)) return true
  if (ts.isTypeAliasDeclaration(node)) return hasFields(node.type)
  if (ts.isTypeLiteralNode(node)) return node.members.every((each) => !ts.isIndexSignatureDeclaration(each))
  if (ts.isParenthesizedTypeNode(node)) return hasFields(node.type)
  if (ts.isIntersectionTypeNode(node)) return node.types.some(hasFields)
  const isWrapper = ts.isTypeReferenceNode(node) && ['Frozen', 'Readonly'].includes(node.typeName.getText())
  return isWrapper && (node.typeArguments ?? []).every(hasFields)
}

/** A field whose name is a symbol is reached by no program, and the compiler numbers it anew each time. */
function member(reading: Reading, property: ts.Symbol): readonly Member[] {
  const [node] = property.declarations ?? []
  if (node === undefined || /node_modules/.test(node.getSourceFile().fileName)) return []
  if (property.name.startsWith('__@')) return []
  const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
  const says = commentOf(reading, property)
  if (ts.isMethodSignature(node) || ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node))
    return [{ name: property.name, isOptional, type: signatureOf(node), says }]
  const type = 'type' in node ? (node.type as ts.TypeNode | undefined) : undefined
  const text = type ? plain(type) : reading.checker.typeToString(reading.checker.getTypeOfSymbol(property))
  return [{ name: property.name, isOptional, type: text, says }]
}

/** Fields with `#`, private and static ones are nobody's business. The constructor is in the code of the class. */
function classMember(reading: Reading, node: ts.ClassElement): readonly Member[] {
  const symbol = node.name && reading.checker.getSymbolAtLocation(node.name)
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected | ts.ModifierFlags.Static
  if (!symbol || node.name?.getText().startsWith('#') || ts.getCombinedModifierFlags(node) & hidden) return []
  const says = commentOf(reading, symbol)
  const of = { name: symbol.name, isOptional: false, says }
  // Of an overloaded method only the signatures are public.
  const isBody = (symbol.declarations?.length ?? 0) > 1 && ts.isMethodDeclaration(node) && node.body !== undefined
  if (isBody) return []
  if (ts.isMethodDeclaration(node)) return [{ ...of, type: signatureOf(node) }]
  const type = 'type' in node ? (node.type as ts.TypeNode | undefined) : undefined
  return [{ ...of, type: type ? plain(type) : reading.checker.typeToString(reading.checker.getTypeOfSymbol(symbol)) }]
}

type Signature = ts.MethodSignature | ts.MethodDeclaration | ts.FunctionDeclaration | ts.ConstructorDeclaration

/** `(a: A): B`, with its type parameters. */
function signatureOf(node: Signature): string {
  const types = node.typeParameters ? `<${node.typeParameters.map(plain).join(', ')}>` : ''
  const result = node.type ? `: ${plain(node.type)}` : ''
  return `${types}(${node.parameters.map(plain).join(', ')})${result}`
}

/** What stands before the members: the name with its type parameters. */
function headOf(node: ts.Declaration): string {
  if (!ts.isTypeAliasDeclaration(node) && !ts.isInterfaceDeclaration(node)) return ''
  const types = node.typeParameters ? `<${node.typeParameters.map(plain).join(', ')}>` : ''
  return types === '' ? '' : `type ${node.name.text}${types}`
}

function codeOf(declarations: readonly ts.Declaration[]): string {
  const overloads = declarations.filter((node) => ts.isFunctionDeclaration(node) && node.body === undefined)
  return (overloads.length > 0 ? overloads : declarations.slice(0, 1)).map(declarationText).join('\n')
}

function declarationText(node: ts.Declaration): string {
  if (ts.isFunctionDeclaration(node)) return `function ${node.name?.text ?? ''}${signatureOf(node)}`
  if (ts.isTypeAliasDeclaration(node)) return written(node).replace(/^export /, '')
  if (ts.isClassDeclaration(node)) {
    const made = node.members.find(ts.isConstructorDeclaration)
    const types = node.typeParameters ? `<${node.typeParameters.map(plain).join(', ')}>` : ''
    return made ? `new ${node.name?.text ?? ''}${types}${signatureOf(made)}` : `class ${node.name?.text ?? ''}${types}`
  }
  if (ts.isVariableDeclaration(node)) return `const ${node.name.getText()}${node.type ? `: ${plain(node.type)}` : ''}`
  return written(node).replace(/^export /, '')
}

/** A piece of source on one line, without comments. */
function plain(node: ts.Node): string {
  return written(node)
    .replace(/\s*\n\s*/g, ' ')
    .trim()
}

function written(node: ts.Node): string {
  return node
    .getText()
    .replace(/\/\*\*[^]*?\*\//g, '')
    .replace(/(^|\s)\/\/ .*$/gm, '')
    .replace(/^\s*\n/gm, '')
}
