// Renders a model's Markdown with a fixed set of elements. HTML and images in it are shown as plain text: nothing is
// loaded, and nothing becomes code. Links show their host.
import { Lexer, type Token, type Tokens } from 'marked'
import { Fragment, memo, type ReactNode } from 'react'
import { OutLink } from './button.tsx'
import { Code } from './code-block.tsx'
import { Text } from './exact-text.tsx'

/** Longer texts are shown as plain text: parsing them would block the page. */
const CHARS_MAX = 200_000
const DEPTH_MAX = 40

export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  const tokens = text.length > CHARS_MAX ? null : parseMarkdown(text)
  if (tokens === null) return <Text as="block" text={text} />
  liftHeadings(tokens)
  return <div className="markdown">{drawBlocks(tokens, 0)}</div>
})

/** If the first heading is a low-level one, all headings get the same level. */
function liftHeadings(tokens: readonly Token[]): void {
  const headings = headingsIn(tokens)
  if ((headings[0]?.depth ?? 1) > 2) for (const heading of headings) heading.depth = 1
}

function headingsIn(tokens: readonly Token[]): readonly Tokens.Heading[] {
  return tokens.flatMap((token) => {
    if (token.type === 'heading') return [token as Tokens.Heading]
    const { tokens: inner = [], items = [] } = token as { tokens?: Token[]; items?: Token[] }
    return headingsIn([...inner, ...items])
  })
}

/** Null if it cannot be parsed as Markdown. */
function parseMarkdown(text: string): readonly Token[] | null {
  try {
    return Lexer.lex(text, { gfm: true })
  } catch {
    return null
  }
}

function drawBlocks(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return (tokens ?? []).map((token, i) => <Fragment key={i}>{drawBlock(token, depth)}</Fragment>)
}

function drawBlock(token: Token, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return <Text as="block" text={token.raw} />
  switch (token.type) {
    // The list item draws its checkbox.
    case 'space':
    case 'checkbox':
      return null
    case 'heading': {
      const { depth: level, tokens } = token as Tokens.Heading
      // The page's own headings are above these.
      return level <= 2 ? <h3>{drawInline(tokens, depth)}</h3> : <h4>{drawInline(tokens, depth)}</h4>
    }
    case 'paragraph':
      return <p>{drawInline((token as Tokens.Paragraph).tokens, depth)}</p>
    case 'blockquote':
      return <blockquote>{drawBlocks((token as Tokens.Blockquote).tokens, depth + 1)}</blockquote>
    case 'list':
      return drawList(token as Tokens.List, depth)
    case 'code': {
      const { text, lang } = token as Tokens.Code
      return <Code text={text} language={lang ?? ''} />
    }
    case 'hr':
      return <hr />
    case 'table':
      return drawTable(token as Tokens.Table, depth)
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? drawInline(tokens, depth) : <Text text={text} />
    }
    default:
      return <Text as="block" text={token.raw} />
  }
}

function drawList({ ordered, start, items }: Tokens.List, depth: number): ReactNode {
  const rows = items.map((item, i) => (
    <li key={i} className={item.task ? 'task' : undefined}>
      {item.task ? <span className="task-mark">{item.checked ? '☑' : '☐'}</span> : null}
      {drawBlocks(item.tokens, depth + 1)}
    </li>
  ))
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>
}

function drawTable({ header, rows }: Tokens.Table, depth: number): ReactNode {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i}>{drawInline(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{drawInline(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function drawInline(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return (tokens ?? []).map((token, i) => <Fragment key={i}>{drawSpan(token, depth)}</Fragment>)
}

function drawSpan(token: Token, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return <Text text={token.raw} />
  switch (token.type) {
    case 'strong':
      return <strong>{drawInline((token as Tokens.Strong).tokens, depth + 1)}</strong>
    case 'em':
      return <em>{drawInline((token as Tokens.Em).tokens, depth + 1)}</em>
    case 'del':
      return <del>{drawInline((token as Tokens.Del).tokens, depth + 1)}</del>
    case 'codespan':
      return (
        <code>
          <Text text={(token as Tokens.Codespan).text} />
        </code>
      )
    case 'br':
      return <br />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return <OutLink url={href}>{drawInline(tokens, depth + 1)}</OutLink>
    }
    case 'image': {
      const { text, href } = token as Tokens.Image
      return <Text text={`[picture: ${text || 'without a name'}, ${href}]`} />
    }
    case 'escape':
    case 'text': {
      const { text, tokens } = token as Tokens.Text
      return tokens ? drawInline(tokens, depth + 1) : <Text text={text} />
    }
    default:
      return <Text text={token.raw} />
  }
}
