// Forms that cannot be undone ask first.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset?.ask;
  if (question && !confirm(question)) event.preventDefault();
});
