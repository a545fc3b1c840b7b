// docs/reference/configuration.md: every setting that the checks of the configuration file know, with its text. Text only.
import { SETTING_CHECKS } from '../../src/cli/state/config.ts'
import { cell } from './markdown.ts'
import { SETTING_TEXTS } from './setting-texts.ts'

type Checked = {
  readonly form?: string
  readonly fields?: Readonly<Record<string, Checked>>
  readonly each?: Checked
}
export type Setting = {
  /** Such as `mcp.NAME.command`, where `NAME` stands for a name of the user's. */
  readonly path: string
  readonly form: string
}

export function configurationPage(): string {
  const groups = Object.entries(SETTING_CHECKS as Readonly<Record<string, Checked>>)
  const index = groups.map(([name]) => `[\`${name}\`](#${name.toLowerCase()})`)
  return `# Configuration file

Every setting of \`config.json\`, which the command line reads: its form and what it is for.

The file is one JSON object, at \`$XDG_CONFIG_HOME/terret/config.json\`, else \`~/.config/terret/config.json\`. A setting that is not known or not valid is refused, with the file and the field. [The guide](../guide/cli.md#the-configuration) has a whole file, and says [what the file of a folder may do](../guide/cli.md#trust). A library has no configuration file: what these settings set are options of the harness there.

${index.join(' · ')}

${groups.map(([name, check]) => groupSection(name, check)).join('\n\n')}
`
}

/** Every setting, those that hold others before them. */
export function allSettings(): readonly Setting[] {
  return Object.entries(SETTING_CHECKS as Readonly<Record<string, Checked>>).flatMap(([name, check]) =>
    settingsIn(name, check),
  )
}

function settingsIn(path: string, { form, fields = {}, each }: Checked): readonly Setting[] {
  const own = form ?? 'object'
  const inner = Object.entries(fields).flatMap(([name, check]) => settingsIn(`${path}.${name}`, check))
  return [{ path, form: own }, ...inner, ...(each ? settingsIn(`${path}.NAME`, each) : [])]
}

function groupSection(name: string, check: Checked): string {
  const [first, ...rest] = settingsIn(name, check)
  const rows = rest.map(({ path, form }) => `| \`${path}\` | ${cell(form)} | ${cell(SETTING_TEXTS[path] ?? '')} |`)
  const table = rows.length === 0 ? '' : `\n\n| setting | form | means |\n|---|---|---|\n${rows.join('\n')}`
  return `## ${name}\n\n${SETTING_TEXTS[name] ?? ''}\n\nForm: ${first?.form ?? ''}.${table}`
}
