// Texts that stand in Markdown as they are. Text only.

/** A text in one cell of a table. */
export function cell(text: string): string {
  return outsideOfCode(text.replace(/\s*\n\s*/g, ' ').trim(), escaped).replaceAll('|', '\\|')
}

/** A paragraph: what would be read as HTML or as an interpolation is shown as it is. */
export function paragraph(text: string): string {
  return outsideOfCode(text, escaped)
}

/** A piece of code in a cell. */
export function codeCell(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim().replaceAll('|', '\\|')
  return line === '' ? '' : line.includes('`') ? `\`\` ${line} \`\`` : `\`${line}\``
}

/** The address of a heading in its page, as GitHub makes it; site/ makes it in the same way. */
export function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

function escaped(text: string): string {
  return text.replaceAll('<', '&lt;')
}

function outsideOfCode(text: string, change: (part: string) => string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : change(part)))
    .join('')
}
