// The one script that the file's content security policy names by its hash. It unpacks the modules of the page, makes
// addresses of them in the order in which they import each other, and starts the page. Nothing is loaded from elsewhere.
const start = document.getElementById("dlprof-start");

async function unpack(element) {
  const packed = Uint8Array.from(atob(JSON.parse(element.textContent)), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

try {
  let last;
  const addresses = new Map();
  for (const element of document.querySelectorAll("script[data-module]")) {
    let text = await unpack(element);
    for (const [name, address] of addresses) text = text.replaceAll(`"./${name}"`, JSON.stringify(address));
    last = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    addresses.set(element.dataset.module, last);
  }
  const page = await import(last);
  start.remove();
  page.open(document.body, unpack);
} catch (error) {
  start.textContent = `This file could not be opened; it takes a browser of 2023 or later. (${error})`;
}
