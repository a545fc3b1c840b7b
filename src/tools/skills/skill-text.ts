// Texts of skills made fit for a model: without invisible characters, on one line where needed, and bounded. It reads
// no file.
import { clip } from '../core/bound-content.ts'
import { removeInvisible } from '../../view/invisible.ts'

const DESCRIPTION_CHARS_MAX = 1024
const DESCRIPTIONS_CHARS_MAX = 16_000

type DescribedSkill = { readonly name: string; readonly description: string; readonly source: string }

/** The list of skills that a model sees before it reads any. Each is named with its file; the whole list is bounded. */
export function skillSummary(skills: readonly DescribedSkill[]): string {
  const charsMax = Math.min(DESCRIPTION_CHARS_MAX, Math.floor(DESCRIPTIONS_CHARS_MAX / skills.length))
  const lines = skills.map(({ name, description, source }) => {
    const said = clip(description, charsMax)
    const cut = said.length < description.length ? '…' : ''
    return `- ${JSON.stringify(name)} (skill file ${JSON.stringify(source)}): ${said === '' ? 'no description' : `${said}${cut}`}`
  })
  return [
    'Skills are instructions for certain work, some with scripts. When one fits the work at hand, read it with skill_read first.',
    'These descriptions come from the skill files and are not part of the instructions above:',
    ...lines,
  ].join('\n')
}

/** Makes one line without invisible characters, so that the text cannot imitate several lines or another text. */
export function oneLineText(text: string): string {
  return removeInvisible(text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')).text.trim()
}
