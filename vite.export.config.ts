// A session as one file: src/web/file into dist/export/session.html, a page with its script and style inside and a place for the log.
// `terret export --html` puts the log there. The policy of the page allows exactly this script and this style.
import { createHash } from 'node:crypto'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { licensesOf } from './vite.config.ts'

const whole: Plugin = {
  name: 'whole',
  enforce: 'post',
  generateBundle(_, bundle) {
    const files = Object.values(bundle)
    const script = files.map((file) => (file.type === 'chunk' ? file.code : '')).join('')
    const style = files.map((file) => (file.type === 'asset' ? String(file.source) : '')).join('')
    for (const { fileName } of files) delete bundle[fileName]
    const licenses = licensesOf(files.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])))
    this.emitFile({ type: 'asset', fileName: 'session.html', source: pageOf(safe(script), style, licenses) })
  },
}

/** Within a script nothing may look like its end. `\x3c` is the same in texts, patterns and templates. */
function safe(script: string): string {
  return script.replace(/<(?=\/script|!--|script)/gi, '\\x3c')
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

function pageOf(script: string, style: string, licenses: string): string {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Terret session</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript to show the session that is in it.</noscript>
<script type="application/json" id="session">{{SESSION}}</script>
<script type="text/plain" id="licenses">${licenses.replaceAll('<', '(').replaceAll('{{', '{ {')}</script>
<script>${script}</script>
</body>
</html>
`
}

export default defineConfig({
  root: 'src/web',
  base: './',
  plugins: [react(), whole],
  build: {
    outDir: '../../dist/export',
    emptyOutDir: true,
    target: 'es2022',
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: false,
    copyPublicDir: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: 'src/web/file/main.tsx',
      output: { format: 'iife', codeSplitting: false },
      // A script that is no module has no address.
      transform: { define: { 'import.meta': '{}' } },
    },
  },
})
